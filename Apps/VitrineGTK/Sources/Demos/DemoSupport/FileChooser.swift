import CGTK
package import VitrineGTK

/// The dialog of the desktop that chooses files or a folder.
@MainActor
package enum FileChooser {
    /// Asks for files to open.
    package static func chooseFiles(
        _ title: String, in window: Window, then body: @escaping @MainActor ([String]) -> Void
    ) {
        ask(title, GTK_FILE_CHOOSER_ACTION_OPEN, in: window, then: body)
    }

    /// Asks for a folder.
    package static func chooseFolder(
        _ title: String, in window: Window, then body: @escaping @MainActor (String) -> Void
    ) {
        ask(title, GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, in: window) { if let folder = $0.first { body(folder) } }
    }

    private static func ask(
        _ title: String, _ action: GtkFileChooserAction, in window: Window,
        then body: @escaping @MainActor ([String]) -> Void
    ) {
        let dialog = GTKObject(owning: gtk_file_chooser_native_new(title, window.pointer, action, nil, nil)!)
        gtk_file_chooser_set_select_multiple(dialog.opaque, action == GTK_FILE_CHOOSER_ACTION_OPEN ? 1 : 0)
        // The handler retains the dialog until it is destroyed.
        dialog.onResponse { answer in
            let paths = answer == GTK_RESPONSE_ACCEPT ? chosen(dialog) : []
            gtk_native_dialog_destroy(UnsafeMutablePointer<GtkNativeDialog>(dialog.opaque))
            if !paths.isEmpty { body(paths) }
        }
        gtk_native_dialog_show(UnsafeMutablePointer<GtkNativeDialog>(dialog.opaque))
    }

    private static func chosen(_ dialog: GTKObject) -> [String] {
        guard let files = gtk_file_chooser_get_files(dialog.opaque) else { return [] }
        defer { g_object_unref(UnsafeMutableRawPointer(files)) }
        return (0..<g_list_model_get_n_items(files)).compactMap { index in
            guard let file = g_list_model_get_item(files, index) else { return nil }
            defer { g_object_unref(UnsafeMutableRawPointer(file)) }
            guard let path = g_file_get_path(OpaquePointer(file)) else { return nil }
            defer { g_free(path) }
            return String(cString: path)
        }
    }
}
