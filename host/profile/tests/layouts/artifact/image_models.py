# As the artifact has it: a dictionary of percentages.
image_accuracy_dict = {
    "small_net": 69.1, #quantized
    "large_net": 84.3,
}
