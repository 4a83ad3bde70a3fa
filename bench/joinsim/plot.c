#include "bench/joinsim/plot.h"

#include "bench/joinsim/run.h"

#include <stdio.h>

enum { LEFT = 60, TOP = 40, WIDTH = 480, HEIGHT = 240, WAIT_MAX_S = 30 };

static const uint32_t waits_s[] = {0, 1, 2, 5, 10, 15, 20, 30};
enum { WAITS = sizeof waits_s / sizeof waits_s[0] };
static const struct {
    uint32_t upload_s;
    const char *colour;
} lines[] = {{10, "#1b6ca8"}, {15, "#c8553d"}, {60, "#4c8c4a"}};
enum { LINES = sizeof lines / sizeof lines[0] };

/* Returns the share of the linked samples that are joined, in percent. */
static double joined_share(uint32_t upload_s, uint32_t wait_s, uint64_t seed)
{
    struct schedule schedule = *schedule_find("usual");
    schedule.upload_interval = upload_s * 1000;
    schedule.seconds = 240;
    schedule.wait = wait_s * 1000;
    struct traffic traffic;
    struct score score;
    run_schedule(&schedule, seed, &traffic, &score);
    double joined = (double)(score_joined(&score) + score.joined_beyond);
    double share = score.linked ? 100 * joined / (double)score.linked : 0;
    score_deinit(&score);
    traffic_deinit(&traffic);
    return share;
}

static double x_of(uint32_t wait_s)
{
    return LEFT + (double)wait_s * WIDTH / WAIT_MAX_S;
}

static double y_of(double percent)
{
    return TOP + (100 - percent) * HEIGHT / 100;
}

static void draw_axes(FILE *file)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#444\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"22\" font-size=\"14\">Samples joined, in %% of those that name a "
            "span</text>\n",
            LEFT + WIDTH + 130, TOP + HEIGHT + 50, LEFT);
    for (int percent = 0; percent <= 100; percent += 20)
        fprintf(file,
                "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
                LEFT, y_of(percent), WIDTH, LEFT - 8, y_of(percent) + 4, percent);
    for (uint32_t wait_s = 0; wait_s <= WAIT_MAX_S; wait_s += 5)
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u s</text>\n",
                x_of(wait_s), TOP + HEIGHT + 18, wait_s);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">samples.wait</text>\n",
            LEFT + WIDTH / 2, TOP + HEIGHT + 38);
}

static void draw_line(FILE *file, int line, uint64_t seed)
{
    double share = 0;
    fprintf(file, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", lines[line].colour);
    for (int i = 0; i < WAITS; i++) {
        share = joined_share(lines[line].upload_s, waits_s[i], seed);
        fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M', x_of(waits_s[i]), y_of(share));
    }
    fprintf(file, "\"/>\n<path d=\"M%d %dh16\" stroke-width=\"2\" stroke=\"%s\"/>",
            LEFT + WIDTH - 150, TOP + HEIGHT - 64 + 20 * line, lines[line].colour);
    fprintf(file, "<text x=\"%d\" y=\"%d\">uploads every %u s</text>\n", LEFT + WIDTH - 128,
            TOP + HEIGHT - 60 + 20 * line, lines[line].upload_s);
}

bool plot_waits(const char *path, uint64_t seed)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return false;
    }
    draw_axes(file);
    for (int i = 0; i < LINES; i++)
        draw_line(file, i, seed);
    fputs("</svg>\n", file);
    return fclose(file) == 0;
}
