"""Two runs from their files: opened, scored again, paired, decided."""
