"""What only releases of frequent items (`kind: items`) read: files beside a spec."""
