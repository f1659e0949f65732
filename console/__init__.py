"""The Django project and the browser console."""
