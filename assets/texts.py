"""Generator of the texts that the shipped model is trained and tested on.

Two skills over the same names and objects:

* arithmetic: sums and differences of numbers up to 20, bare and as word problems. One in ten of
  all (operation, number, number) triples never occurs in training; the test set holds only those.
* language: a few stated facts about people, things, places and colours, and questions about them.
  The answer has to be read off the text, since the facts are drawn anew for every text. One in ten
  of all sets of facts never occurs in training; the test set holds only those.
"""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

Triple = tuple[str, int, int]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


NAMES = words("Ann Ben Cara Dan Eva Finn Gina Hugo Ivy Jack Kate Leo Mia Noah Olga Paul")
OBJECTS = words(
    "apples books coins cards pens shells stones keys cups hats stamps beads boxes nuts eggs toys"
)
PLACES = words("kitchen garden school park library office station market barn tower cellar harbour")
COLOURS = words("red blue green black white yellow pink brown")
LARGEST_NUMBER = 20


@dataclass(frozen=True)
class Question:
    """A question, its answer, and the index of the fact that holds the answer."""

    text: str
    answer: str
    fact: int = 0

    def prompt(self) -> str:
        """Return the question up to the place where the answer belongs."""
        return f"Question: {self.text}\nAnswer:"


@dataclass(frozen=True)
class Item:
    """Some stated facts with questions about them."""

    facts: tuple[str, ...]
    questions: tuple[Question, ...]

    def prompt(self) -> str:
        """Return the facts and the first question, without its answer."""
        return "\n".join([*self.context(), self.questions[0].prompt()])

    def text(self) -> str:
        """Return the whole text, every question with its answer."""
        answered = [f"{question.prompt()} {question.answer}." for question in self.questions]
        return "\n".join([*self.context(), *answered])

    def context(self) -> list[str]:
        """Return the facts as one line, or no line where there are none."""
        return [" ".join(self.facts)] if self.facts else []


def held_out(key: str) -> bool:
    """Tell whether what the key describes is kept for the test set (about one in ten is)."""
    return zlib.crc32(key.encode()) % 10 == 0


def triples(testing: bool) -> list[Triple]:
    """List the (operation, number, number) triples of the training or the test set."""
    numbers = range(1, LARGEST_NUMBER + 1)
    return [
        (operation, first, second)
        for operation, first, second in product("+-", numbers, numbers)
        if (operation == "+" or first >= second)
        and held_out(f"{first}{operation}{second}") == testing
    ]


def arithmetic_item(rng: random.Random, choices: list[Triple]) -> Item:
    """Draw one arithmetic problem: bare, or told as a story."""
    operation, first, second = rng.choice(choices)
    answer = str(first + second if operation == "+" else first - second)
    if rng.random() < 0.5:
        return Item((), (Question(f"What is {first} {operation} {second}?", answer),))
    one, two = rng.sample(NAMES, 2)
    thing = rng.choice(OBJECTS)
    changes = {
        "+": (f"{two} gives {one} {second} {thing}.", f"{one} finds {second} {thing}."),
        "-": (f"{one} gives {two} {second} {thing}.", f"{one} loses {second} {thing}."),
    }
    facts = (f"{one} has {first} {thing}.", rng.choice(changes[operation]))
    return Item(facts, (Question(f"How many {thing} does {one} have?", answer),))


def language_item(rng: random.Random, most_questions: int) -> Item:
    """Draw facts that relate two to four people and things, and questions about them."""
    count = rng.randint(2, 4)
    people = rng.sample(NAMES, count)
    things = rng.sample(OBJECTS, count)
    places = rng.sample(PLACES, count)
    colours = rng.sample(COLOURS, count)
    stated = [
        state(relation, *row)
        for relation in rng.sample(("has", "place", "colour"), 2 if count == 2 else 1)
        for row in zip(people, things, places, colours, strict=True)
    ]
    rng.shuffle(stated)
    questions = [
        Question(text, answer, fact)
        for fact, (_, asked) in enumerate(stated)
        for text, answer in asked
    ]
    chosen = rng.sample(questions, min(rng.randint(1, most_questions), len(questions)))
    return Item(tuple(fact for fact, _ in stated), tuple(chosen))


def state(
    relation: str, name: str, thing: str, place: str, colour: str
) -> tuple[str, list[tuple[str, str]]]:
    """Return one fact and the questions that it answers, each with its answer."""
    if relation == "has":
        return f"{name} has the {thing}.", [
            (f"Who has the {thing}?", name),
            (f"What does {name} have?", thing),
        ]
    if relation == "place":
        return f"{name} is in the {place}.", [
            (f"Who is in the {place}?", name),
            (f"Where is {name}?", place),
        ]
    return f"The {thing} are {colour}.", [
        (f"What is {colour}?", thing),
        (f"What colour are the {thing}?", colour),
    ]


def arithmetic(seed: int, testing: bool) -> Iterator[Item]:
    """Yield arithmetic problems without end."""
    rng = random.Random(f"arithmetic {seed} {testing}")
    choices = triples(testing)
    while True:
        yield arithmetic_item(rng, choices)


def language(seed: int, testing: bool, most_questions: int = 1) -> Iterator[Item]:
    """Yield facts with questions without end."""
    rng = random.Random(f"language {seed} {testing}")
    while True:
        item = language_item(rng, most_questions)
        if held_out(" ".join(sorted(item.facts))) == testing:
            yield item
