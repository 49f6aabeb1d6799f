"""Parts of a forward pass: functions from Data to Data that architectures and formulas share."""
