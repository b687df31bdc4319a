// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewLoopback

/// Serves the files of a folder to programs of this machine, and takes new ones if it is asked to.
struct FileServer: Sendable {
    /// The largest file that is taken, as bodies are read into memory.
    static let largestUpload: Int64 = 256 << 20

    /// The folder, without symbolic links.
    let root: String
    let takesFiles: Bool
    let replacesFiles: Bool
    /// Makes a link and returns the system's error code, or 0.
    var link: @Sendable (_ file: String, _ name: String) -> Int32 = { systemLink($0, $1) == 0 ? 0 : errno }

    /// - Returns: `nil` for a path that is no folder.
    init?(folder: String, takesFiles: Bool, replacesFiles: Bool) {
        guard let resolved = realpath(folder, nil) else { return nil }
        defer { free(resolved) }
        root = String(cString: resolved)
        (self.takesFiles, self.replacesFiles) = (takesFiles, replacesFiles)
        guard Self.status(root)?.isFolder == true else { return nil }
    }

    // MARK: Requests

    /// What is done with a request's body.
    func handling(of request: ServerRequest) -> LoopbackServer.BodyHandling {
        if let refusal = refusal(of: request) { return .refused(refusal) }
        guard takesFiles, request.method == "PUT" else { return .refused(Self.text(405, "files are taken with --upload, and PUT")) }
        // Of a chunked body it is not known how large it becomes.
        guard let text = request.header("Content-Length"), let length = Int64(text) else {
            return .refused(Self.text(411, "Content-Length is missing"))
        }
        guard length <= Self.largestUpload else {
            return .refused(Self.text(413, "the file has more than \(Self.largestUpload >> 20) MiB"))
        }
        return .kept
    }

    /// Responds to a request; `nil` if that was done on the connection.
    func respond(_ request: ServerRequest, _ connection: ServerConnection) throws -> ServerResponse? {
        if let refusal = refusal(of: request) { return refusal }
        guard let path = path(of: request.path) else { return Self.text(404, "not found") }
        switch request.method {
        case "GET", "HEAD": return try read(path, request, connection)
        case "PUT" where takesFiles: return write(path, request.body)
        default:
            return ServerResponse(status: 405, headers: [ServerField("Allow", takesFiles ? "GET, HEAD, PUT" : "GET, HEAD")])
        }
    }

    /// The response to a request for which nothing is done, with any body.
    private func refusal(of request: ServerRequest) -> ServerResponse? {
        // A page of another site whose name was made to lead here must not read these files.
        guard isOwnHost(request.header("Host")) else { return Self.text(421, "this server is localhost") }
        guard let path = path(of: request.path) else { return Self.text(404, "not found") }
        guard takesFiles, request.method == "PUT" else { return nil }
        // RFC 9110, sections 14.5 and 13.1.
        if request.header("Content-Range") != nil { return Self.text(400, "a part of a file (Content-Range) is not taken") }
        let tag = resolved(path).flatMap(Self.status)?.tag
        let isMet =
            request.header("If-Match").map { Self.matches($0, tag) } ?? true
            && request.header("If-None-Match").map { !Self.matches($0, tag) } ?? true
        return isMet ? nil : Self.text(412, "the condition is not met by the present file")
    }

    /// Whether a field has the tag of a file; `nil` for one that is not there.
    private static func matches(_ field: String, _ tag: String?) -> Bool {
        tag.map { field == "*" || field.containsScalars(of: $0) } ?? false
    }

    private func isOwnHost(_ host: String?) -> Bool {
        guard let host else { return true }
        let name = host.hasBytePrefix("[") ? host.prefixScalars { $0 != "]" } + "]" : host.prefixScalars { $0 != ":" }
        return ["localhost", "127.0.0.1", "[::1]"].contains(name.lowercased())
    }

    /// The path below the folder, such as `a/b`, empty for the folder itself; `nil` for one that leads elsewhere, or has a hidden name.
    ///
    /// - Parameter path: without percent-encoding.
    func path(of path: String) -> String? {
        let names = path.splitScalars(separator: "/").map(String.init)
        return names.allSatisfy { $0.isFileName && !$0.hasBytePrefix(".") } ? names.joined(separator: "/") : nil
    }

    /// The path of an existing file, if it is below the folder and has no hidden name also where symbolic links lead.
    private func resolved(_ path: String) -> String? {
        guard let found = realpath("\(root)/\(path)", nil) else { return nil }
        defer { free(found) }
        let text = String(cString: found)
        let base = root == "/" ? "/" : "\(root)/"
        guard text != root else { return text }
        return text.hasBytePrefix(base) && self.path(of: String(text.dropFirstScalars(base.unicodeScalars.count))) != nil ? text : nil
    }

    static func text(_ status: Int, _ text: String) -> ServerResponse {
        ServerResponse(
            status: status, headers: [ServerField("Content-Type", "text/plain; charset=utf-8")], body: .data(Data("\(text)\n".utf8)))
    }

    // MARK: Files

    struct Status {
        let isFolder: Bool
        let isFile: Bool
        let size: Int64
        let modified: Date
        /// Changes whenever the file does.
        let tag: String
    }

    static func status(_ path: String) -> Status? {
        var status = stat()
        return stat(path, &status) == 0 ? Self.status(status) : nil
    }

    private static func status(_ status: stat) -> Status {
        #if canImport(Darwin)
        let nanoseconds = status.st_mtimespec.tv_nsec
        #else
        let nanoseconds = status.st_mtim.tv_nsec
        #endif
        let modified = CurlTimeCondition.modification(status)
        let kind = status.st_mode & S_IFMT
        return Status(
            isFolder: kind == S_IFDIR, isFile: kind == S_IFREG, size: Int64(status.st_size), modified: modified,
            tag: "\"\(status.st_ino)-\(Int64(modified.timeIntervalSince1970))-\(nanoseconds)-\(status.st_size)\"")
    }

    private func read(_ path: String, _ request: ServerRequest, _ connection: ServerConnection) throws -> ServerResponse? {
        guard let file = resolved(path), let status = Self.status(file) else { return Self.text(404, "not found") }
        if status.isFolder {
            guard request.path.hasByteSuffix("/") else {
                let target = "/" + path.splitScalars(separator: "/").map { RequestURL.escaped(String($0)) }.joined(separator: "/") + "/"
                return ServerResponse(status: 301, headers: [ServerField("Location", target)])
            }
            if let index = resolved(path.isEmpty ? "index.html" : "\(path)/index.html"), Self.status(index)?.isFile == true {
                return try send(index, request, connection)
            }
            return listing(file, path)
        }
        guard status.isFile, !request.path.hasByteSuffix("/") else { return Self.text(404, "not found") }
        return try send(file, request, connection)
    }

    /// Sends a file, or the part that a range asks for (RFC 9110, section 14).
    private func send(_ file: String, _ request: ServerRequest, _ connection: ServerConnection) throws -> ServerResponse? {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return Self.text(errno == EACCES ? 403 : 404, "the file can't be read") }
        defer { close(descriptor) }
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { return Self.text(500, "the file can't be read") }
        let status = Self.status(found)
        var fields = [
            ServerField("Last-Modified", CurlTimeCondition.text(of: status.modified)), ServerField("ETag", status.tag),
            ServerField("Accept-Ranges", "bytes"), ServerField("X-Content-Type-Options", "nosniff"),
        ]
        if let tags = request.header("If-None-Match") {
            if tags == "*" || tags.containsScalars(of: status.tag) { return ServerResponse(status: 304, headers: fields) }
        } else if let since = request.header("If-Modified-Since").flatMap(CurlTimeCondition.date), status.modified <= since {
            return ServerResponse(status: 304, headers: fields)
        }
        fields.append(ServerField("Content-Type", MediaTypes.type(of: file)))
        var range = 0..<status.size
        let isSame = request.header("If-Range").map { $0 == status.tag } ?? true
        let asked = isSame && request.method == "GET" ? request.header("Range").flatMap { Self.range($0, of: status.size) } : nil
        if let asked {
            guard !asked.isEmpty else {
                return ServerResponse(status: 416, headers: [ServerField("Content-Range", "bytes */\(status.size)")])
            }
            range = asked
            fields.append(ServerField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(status.size)"))
        }
        fields.append(ServerField("Content-Length", "\(range.count)"))
        if !connection.keepAlive { fields.append(ServerField("Connection", "close")) }
        let head = "HTTP/1.1 \(asked == nil ? "200 OK" : "206 Partial Content")\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        try connection.send(raw: head + "\r\n")
        guard request.method == "GET" else { return nil }
        try copy(descriptor, range, to: connection)
        return nil
    }

    private func copy(_ descriptor: Int32, _ range: Range<Int64>, to connection: ServerConnection) throws {
        var position = range.lowerBound
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while position < range.upperBound {
            let count = pread(descriptor, &buffer, Int(min(Int64(buffer.count), range.upperBound - position)), off_t(position))
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                // The file has become shorter; that the client gets less than was announced tells it.
                return connection.cut()
            }
            try connection.send(raw: Data(buffer[..<count]))
            position += Int64(count)
        }
    }

    /// The bytes of the only range of a field; empty for one that the file has not got, `nil` for a field that is to be ignored.
    static func range(_ field: String, of size: Int64) -> Range<Int64>? {
        guard field.lowercased().hasBytePrefix("bytes="), !field.unicodeScalars.contains(",") else { return nil }
        let bounds = field.dropFirstScalars(6).splitScalars(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, bounds.allSatisfy({ $0.isEmpty || $0.isAllDigits }) else { return nil }
        // A number that is too large is one behind the end.
        let (first, last) = (bounds[0].isEmpty ? nil : Int64(bounds[0]) ?? .max, bounds[1].isEmpty ? nil : Int64(bounds[1]) ?? .max)
        guard let first else {
            guard let last else { return nil }
            return max(size - last, 0)..<size
        }
        if let last, last < first { return nil }
        return first < size ? first..<(min(last ?? size - 1, size - 1) + 1) : 0..<0
    }

    // MARK: New files

    func write(_ path: String, _ body: Data) -> ServerResponse {
        let parts = path.splitScalars(separator: "/")
        guard let name = parts.last, let folder = resolved(parts.dropLast().joined(separator: "/")), Self.status(folder)?.isFolder == true
        else {
            return Self.text(404, "there is no such folder")
        }
        // Complete under another name first, so that an upload that is cut leaves the earlier file.
        let target = "\(folder)/\(name)"
        let temporary = "\(folder)/.curlew-\(UUID().uuidString)"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { return Self.text(403, "the file can't be written: \(String(cString: strerror(errno)))") }
        defer { unlink(temporary) }
        do throws(Output.Failure) {
            defer { close(descriptor) }
            try Output(descriptor: descriptor).write(body)
        } catch {
            return Self.text(507, "the file can't be written: \(String(cString: strerror(error.code)))")
        }
        // A link is made only where there is no file.
        var code = link(temporary, target)
        if code == 0 { return Self.text(201, "created") }
        if [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(code) {
            // A file system without links: an empty file keeps the name.
            let place = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
            code = place < 0 ? errno : 0
            if place >= 0 { close(place) }
        }
        if code == EEXIST {
            guard replacesFiles, Self.status(target)?.isFile == true else {
                return Self.text(409, "there is a file of this name; curlew serve --force replaces it")
            }
        } else if code != 0 {
            return Self.text(403, "the file can't be written: \(String(cString: strerror(code)))")
        }
        guard rename(temporary, target) == 0 else {
            let reason = String(cString: strerror(errno))
            if code == 0 { unlink(target) }
            return Self.text(403, "the file can't be written: \(reason)")
        }
        return code == 0 ? Self.text(201, "created") : Self.text(200, "replaced")
    }

    // MARK: Pages

    private func listing(_ folder: String, _ path: String) -> ServerResponse {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
            return Self.text(403, "the folder can't be read")
        }
        var rows: [String] = path.isEmpty ? [] : ["<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>"]
        for name in names.sorted() where !name.hasBytePrefix(".") {
            guard let place = resolved(path.isEmpty ? name : "\(path)/\(name)"), let status = Self.status(place),
                status.isFile || status.isFolder
            else { continue }
            let slash = status.isFolder ? "/" : ""
            let size = status.isFolder ? "" : ProgressLine.size(Double(status.size))
            rows.append(
                "<tr><td><a href=\"./\(RequestURL.escaped(name))\(slash)\">\(Self.html(name))\(slash)</a></td><td>\(size)</td>"
                    + "<td>\(CurlTimeCondition.text(of: status.modified))</td></tr>")
        }
        let upload = takesFiles ? Self.form : ""
        let page = """
            <!DOCTYPE html>
            <html><head><meta charset="utf-8"><title>/\(Self.html(path))</title><style>td{padding:0 1em 0 0}</style></head>
            <body><h1>/\(Self.html(path))</h1>\(upload)<table>
            \(rows.joined(separator: "\n"))
            </table></body></html>

            """
        return .ok(page, type: "text/html; charset=utf-8")
    }

    /// Sends each file by itself. Pages of other sites can't do that: a PUT needs a permission that is not given (CORS).
    private static let form = """
        <p><input type="file" multiple id="files"> <button id="send">Upload</button> <span id="state"></span></p><script>
        document.getElementById("send").onclick = async () => {
          const state = document.getElementById("state");
          for (const file of document.getElementById("files").files) {
            state.textContent = file.name;
            const response = await fetch("./" + encodeURIComponent(file.name), {method: "PUT", body: file});
            if (!response.ok) { state.textContent = file.name + ": " + await response.text(); return; }
          }
          location.reload();
        };
        </script>
        """

    private static func html(_ text: String) -> String {
        text.replacingScalars("&", with: "&amp;").replacingScalars("<", with: "&lt;").replacingScalars("\"", with: "&quot;")
    }
}

private func systemLink(_ file: String, _ name: String) -> Int32 { link(file, name) }

/// The types of files by their names.
private enum MediaTypes {
    private static let types = [
        "css": "text/css", "csv": "text/csv", "gif": "image/gif", "gz": "application/gzip", "htm": "text/html", "html": "text/html",
        "ico": "image/x-icon", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
        "md": "text/markdown", "mjs": "text/javascript", "mp3": "audio/mpeg", "mp4": "video/mp4", "pdf": "application/pdf",
        "png": "image/png", "svg": "image/svg+xml", "txt": "text/plain", "wasm": "application/wasm", "webp": "image/webp",
        "xml": "application/xml", "zip": "application/zip",
    ]

    static func type(of path: String) -> String {
        let name = path.splitScalars(separator: "/").last ?? ""
        let type = name.splitScalars(separator: ".").count > 1 ? types[name.splitScalars(separator: ".").last?.lowercased() ?? ""] : nil
        guard let type else { return "application/octet-stream" }
        return type.hasBytePrefix("text/") ? "\(type); charset=utf-8" : type
    }
}
