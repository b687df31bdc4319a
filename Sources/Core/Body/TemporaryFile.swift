// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A file that exists for one request: removed when the request has finished, at the latest with the last reference to this object.
package final class TemporaryFile: Sendable {
    package let url: URL
    private let removed = Lock(false)

    /// - Parameter url: the file, which need not exist yet.
    package init(_ url: URL) {
        self.url = url
    }

    deinit {
        remove()
    }

    var isRemoved: Bool { removed.withLock { $0 } }

    /// Removes the file. Only the first call does, as another file may have the URL by then.
    func remove() {
        let isFirst = removed.withLock { removed in
            defer { removed = true }
            return !removed
        }
        if isFirst { unlink(url.path) }
    }
}
