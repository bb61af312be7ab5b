"""Records as pages show them: fetched by offset, and their keys and values decoded."""
