"""Program-of-thought: questions that a model answers with a program, which is run."""
