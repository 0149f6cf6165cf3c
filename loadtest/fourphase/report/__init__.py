"""What a load test prints and writes: figures, verdict, charts and pages."""
