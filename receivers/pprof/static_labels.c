#include "receivers/pprof/static_labels.h"

bool static_labels_read_all(const struct series_label *labels, size_t count, struct series *series,
                            struct error *err)
{
    if (!series_read(series, labels, count, err))
        return false;
    series_set_default(series, SLICE("service.name"), SLICE("unknown_service"));
    return true;
}

bool static_labels_read(const struct config_pairs *labels, struct series *series, struct error *err)
{
    struct series_label all[SERIES_LABELS_MAX];
    for (size_t i = 0; i < labels->count && i < SERIES_LABELS_MAX; i++)
        all[i] = (struct series_label){slice_of_string(labels->items[i].name),
                                       slice_of_string(labels->items[i].value)};
    return static_labels_read_all(all, labels->count, series, err);
}
