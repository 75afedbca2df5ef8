/* SPDX-License-Identifier: MIT */

/* irq-tree MACHINE DIRECTORY — for tests that are not in C */

#include <stdio.h>

#include "tests/tools/irq-tree.h"

int main(int argc, char **argv) {
        struct irq_tree tree;

        if (argc != 3)
                return 2;
        tree_init(&tree, argv[2]);
        if (!tree_build(&tree, argv[1])) {
                fprintf(stderr, "irq-tree: there is no machine '%s'\n", argv[1]);
                return 1;
        }
        return 0;
}
