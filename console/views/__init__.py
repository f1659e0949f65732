"""The pages. Views ask selectors, call actions, and choose a template; rules live elsewhere."""
