"""What selections have in common and where they lie: numbers, tables and figures."""
