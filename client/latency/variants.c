/* SPDX-License-Identifier: MIT */

#include "client/latency/variants.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/broker.h"
#include "client/cli/scheduling.h"
#include "client/cli/text.h"

#define CPU_LATENCY_US 20
#define SECTORS_MIN_KB 4
#define SECTORS_MAX_KB 1024

static struct variant *add(struct run *run, const char *name, bool granted) {
        struct variant *variant = &run->variants[run->n_variants++];

        *variant = (struct variant){ .granted = granted };
        (void) snprintf(variant->name, sizeof(variant->name), "%s", name);
        if (granted)
                variant->grant = run->options->grant;
        variant->grant.irq = NULL;
        return variant;
}

void variant_refused(struct variant *variant, const struct grant_result *result) {
        struct broker broker = { .socket = variant->grant.socket };
        char text[320], help[320];

        variant->unusable = true;
        variant->error = result->error;
        if (result->error == -EPERM) {
                text_printable(text, sizeof(text), result->answer.text);
                text_printable(help, sizeof(help), result->answer.help);
                (void) snprintf(variant->why, sizeof(variant->why), "refused: %s%s%s", text,
                                help[0] ? "; " : "", help);
        } else
                broker_error_text(&broker, result->error, variant->why, sizeof(variant->why));
}

static void add_governor(struct run *run, const struct grant_request *grant) {
        struct variant *variant = add(run, "priority+governor", true);
        const char *why = governor_why_not(&run->governor);

        variant->grant = *grant;
        variant->governor = true;
        if (why[0] == '\0')
                return;
        variant->unusable = true;
        variant->error = -EOPNOTSUPP;
        (void) snprintf(variant->why, sizeof(variant->why), "%s", why);
}

/* The role and priority are found once, and are the same in all variants. */
static void choose(struct run *run, struct variant *variant, struct grant_request *ret) {
        struct grant_result result = { 0 };

        *ret = run->options->grant;
        ret->irq = NULL;
        result.error = grant_choose(ret, run->role);
        if (result.error >= 0)
                return;
        if (result.error != -ENOENT && result.error != -EACCES) {
                variant_refused(variant, &result);
                return;
        }
        variant->unusable = true;
        variant->error = -EPERM;
        (void) snprintf(variant->why, sizeof(variant->why), "refused: %s",
                        result.error == -ENOENT
                                ? "there is no such role; rtgrantctl status shows those there are"
                                : "no role gives you real-time priority without asking; rtgrantctl "
                                  "status says why");
}

static void add_compared(struct run *run, const struct grant_request *grant) {
        unsigned compare = run->options->compare;
        struct variant *variant;

        if (compare & COMPARE_CPU_LATENCY) {
                variant = add(run, "priority+cpu-latency", true);
                variant->grant = *grant;
                variant->grant.cpu_latency_us = CPU_LATENCY_US;
        }
        if (compare & COMPARE_IRQ) {
                variant = add(run, "priority+irq", true);
                variant->grant = *grant;
                variant->grant.irq = run->options->grant.irq ?: "card:0";
        }
        if (compare & COMPARE_GOVERNOR)
                add_governor(run, grant);
}

static void add_sweep(struct run *run, const struct grant_request *grant) {
        struct variant *variant;
        char name[32];

        for (unsigned kb = SECTORS_MIN_KB; kb <= SECTORS_MAX_KB && run->n_variants < VARIANTS_MAX;
             kb *= 2) {
                (void) snprintf(name, sizeof(name), "max_sectors_kb %u", kb);
                variant = add(run, name, true);
                variant->grant = *grant;
                variant->grant.block = run->options->directory;
                variant->grant.block_max_sectors_kb = kb;
        }
}

void variants_make(struct run *run) {
        struct grant_request grant;
        struct variant *with;

        (void) add(run, "without", false);
        with = add(run, "with", true);
        choose(run, with, &grant);
        with->grant = grant;
        add_compared(run, &grant);
        if (run->options->sweep_max_sectors)
                add_sweep(run, &grant);
        /* Without a priority there is nothing to add to. */
        for (size_t i = 2; with->unusable && i < run->n_variants; i++) {
                run->variants[i].unusable = true;
                run->variants[i].error = with->error;
                memcpy(run->variants[i].why, with->why, sizeof(with->why));
        }
}
