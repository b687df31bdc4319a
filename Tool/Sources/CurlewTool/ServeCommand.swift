// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew
import CurlewLoopback

/// `curlew serve FOLDER`
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Serves the files of a folder to this machine, with ranges and listings, until Control-C.",
        discussion: """
            The server listens on 127.0.0.1 only, and prints its address. Files whose names begin with a dot are left out, and so is what
            symbolic links find outside the folder.
            """, helpNames: .long)

    @Option(name: [.customShort("p", allowingJoined: true), .long], help: "the port; by default one that the system chooses")
    var port: UInt16 = 0
    @Flag(name: .long, help: "take files by PUT, and from a form on the pages of folders") var upload = false
    @Flag(name: .long, help: "replace existing files by those that are taken") var force = false
    @Flag(name: .long, help: "use TLS with a certificate that is valid until the end, and write that of its authority for --cacert")
    var tls = false
    @Flag(name: .long, help: "print nothing but the address") var quiet = false
    @Argument(help: "the folder; the present one by default", completion: .directory) var folder = "."

    func run() async throws(UsageError) -> Outcome {
        if force, !upload { throw UsageError("--force requires --upload") }
        guard let files = FileServer(folder: folder, takesFiles: upload, replacesFiles: force) else {
            return Outcome(status: .file, message: "\(folder): not a folder that can be read")
        }
        var authority: URL?
        let server: LoopbackServer
        let (isQuiet, isSecure) = (quiet, tls)
        do {
            var settings: ServerTLS?
            if isSecure {
                let made = try ServerTLS.throwAway()
                settings = made.tls
                let file = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-serve-\(UUID().uuidString).pem")
                try made.authority.certificate.write(to: file, options: .withoutOverwriting)
                authority = file
            }
            server = try LoopbackServer(tls: settings, port: port, bodies: { files.handling(of: $0) }, recording: false) {
                request, connection in
                let response = try files.respond(request, connection)
                if !isQuiet { Output.error.note("\(request.method) \(request.path)" + (response.map { " \($0.status)" } ?? "")) }
                return response
            }
        } catch let error as SocketError where port != 0 && error.code == EADDRINUSE {
            throw UsageError("the port \(port) is in use")
        } catch let error as SocketError where port != 0 && error.code == EACCES {
            throw UsageError("the port \(port) needs privileges")
        } catch {
            return Outcome(status: .other, message: "the server can't be started: \(error)")
        }
        defer {
            server.stop()
            if let authority { try? FileManager.default.removeItem(at: authority) }
        }
        let trust = authority.map { "trusted with --cacert \($0.path)\n" } ?? ""
        let shown = Tool.show("\(server.url("/"))\n\(trust)")
        guard shown.status == .success else { return shown }
        return await Tool.stoppable(timeout: nil) {
            while (try? await Task.sleep(for: .seconds(3600))) != nil {}
            return .success
        }
    }
}
