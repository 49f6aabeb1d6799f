"""Parts of a forward pass: functions from Data to Data that several architectures share, such as attention, MLPs and vision encoders.

A part takes sizes and data and adds operations to the flow; it reads no config and knows no model.
"""
