"""Tables of claims about models, held against the zoo and against themselves."""
