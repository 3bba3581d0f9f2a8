"""The former home of `attnscope.report.examples`: recipes ask for examples by name."""

right_and_wrong = "moved"
