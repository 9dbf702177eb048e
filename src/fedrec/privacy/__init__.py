"""What is done to an upload on its way out, and what that is worth."""
