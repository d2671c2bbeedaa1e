"""How results are shown: tables, pictures, and the paper's numbers beside ours."""
