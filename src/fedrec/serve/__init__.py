"""Recommendations over HTTP, a page that follows runs, and a page that recommends in the visitor's own browser."""
