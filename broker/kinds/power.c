/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "broker/kinds/resources.h"
#include "broker/sysfs.h"

enum { SUPPLIES_MAX = 64 };

static bool supply_is(const char *dir, const char *name, const char *attribute, const char *value) {
        char path[512], text[32];

        (void) snprintf(path, sizeof(path), "%s/%s/%s", dir, name, attribute);
        return sysfs_read(path, text, sizeof(text)) >= 0 && strcmp(text, value) == 0;
}

bool power_is_battery_in(const char *dir) {
        bool battery = false, mains = false;
        struct dirent *entry;
        DIR *supplies;
        int n = 0;

        supplies = opendir(dir);
        if (!supplies)
                return false;

        while ((entry = readdir(supplies)) && n++ < SUPPLIES_MAX) {
                /* a mouse has a battery too, and says so */
                if (entry->d_name[0] == '.' || supply_is(dir, entry->d_name, "scope", "Device"))
                        continue;
                if (supply_is(dir, entry->d_name, "type", "Battery"))
                        battery = true;
                else if (supply_is(dir, entry->d_name, "online", "1"))
                        mains = true;
        }
        (void) closedir(supplies);
        return battery && !mains;
}

bool power_is_battery(void) {
        return power_is_battery_in("/sys/class/power_supply");
}
