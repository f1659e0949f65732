"""What all endpoints have in common, each convention in one place. A view has them by inheriting `Conventional`, the
rest are defaults of the settings: errors, limits, rates, pages and the schema."""
