"""Everything that changes something, as verbs. REST, browser and workers call these; nothing else writes."""
