"""Who may see and change what: sessions with the user's own connections, request forgery, and headers of answers."""
