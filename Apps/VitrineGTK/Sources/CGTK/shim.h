#pragma once
#include <gtk/gtk.h>
#include <glib-unix.h>
#include <cairo-pdf.h>

// Whether the user's settings for the display of a widget allow animations.
static inline gboolean cgtk_allows_animations(GtkWidget *widget)
{
    gboolean allows = TRUE;
    g_object_get(gtk_widget_get_settings(widget), "gtk-enable-animations", &allows, NULL);
    return allows;
}
