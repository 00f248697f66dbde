#include "pages.h"

// The compiler reads the files, so that the program needs none of them when it runs.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wc23-extensions"
#endif

static const unsigned char index_html[] = {
#embed "pages/index.html"
};
static const unsigned char admin_html[] = {
#embed "pages/admin.html"
};
static const unsigned char style_css[] = {
#embed "pages/style.css"
};
static const unsigned char admin_css[] = {
#embed "pages/admin.css"
};
static const unsigned char icon_svg[] = {
#embed "pages/icon.svg"
};
static const unsigned char gallery_js[] = {
#embed "pages/gallery.js"
};
static const unsigned char grid_js[] = {
#embed "pages/grid.js"
};
static const unsigned char layout_js[] = {
#embed "pages/layout.js"
};
static const unsigned char kinds_js[] = {
#embed "pages/kinds.js"
};
static const unsigned char lightbox_js[] = {
#embed "pages/lightbox.js"
};
static const unsigned char server_js[] = {
#embed "pages/server.js"
};
static const unsigned char thumbhash_js[] = {
#embed "pages/thumbhash.js"
};
static const unsigned char dom_js[] = {
#embed "pages/dom.js"
};
static const unsigned char zoom_js[] = {
#embed "pages/zoom.js"
};
static const unsigned char previews_js[] = {
#embed "pages/previews.js"
};
static const unsigned char tiles_js[] = {
#embed "pages/tiles.js"
};
static const unsigned char admin_js[] = {
#embed "pages/admin.js"
};

static const vitrine_server_page_file files[] = {
    {"index.html", "text/html; charset=utf-8", index_html, sizeof index_html},
    {"admin.html", "text/html; charset=utf-8", admin_html, sizeof admin_html},
    {"style.css", "text/css; charset=utf-8", style_css, sizeof style_css},
    {"admin.css", "text/css; charset=utf-8", admin_css, sizeof admin_css},
    {"icon.svg", "image/svg+xml", icon_svg, sizeof icon_svg},
    {"gallery.js", "text/javascript; charset=utf-8", gallery_js, sizeof gallery_js},
    {"grid.js", "text/javascript; charset=utf-8", grid_js, sizeof grid_js},
    {"layout.js", "text/javascript; charset=utf-8", layout_js, sizeof layout_js},
    {"kinds.js", "text/javascript; charset=utf-8", kinds_js, sizeof kinds_js},
    {"lightbox.js", "text/javascript; charset=utf-8", lightbox_js, sizeof lightbox_js},
    {"server.js", "text/javascript; charset=utf-8", server_js, sizeof server_js},
    {"thumbhash.js", "text/javascript; charset=utf-8", thumbhash_js, sizeof thumbhash_js},
    {"dom.js", "text/javascript; charset=utf-8", dom_js, sizeof dom_js},
    {"zoom.js", "text/javascript; charset=utf-8", zoom_js, sizeof zoom_js},
    {"previews.js", "text/javascript; charset=utf-8", previews_js, sizeof previews_js},
    {"tiles.js", "text/javascript; charset=utf-8", tiles_js, sizeof tiles_js},
    {"admin.js", "text/javascript; charset=utf-8", admin_js, sizeof admin_js},
};

int vitrine_server_page_count(void) { return (int)(sizeof files / sizeof files[0]); }

vitrine_server_page_file vitrine_server_page(int place) {
    if (place < 0 || place >= vitrine_server_page_count()) return (vitrine_server_page_file){0};
    return files[place];
}
