"""The report: finished or running experiments as one HTML page that needs nothing but a browser."""
