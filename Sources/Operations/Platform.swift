// SPDX-License-Identifier: Apache-2.0
@_exported import Foundation

// On Linux, XML is a separate module; only programs that import this one load it.
#if canImport(FoundationXML)
@_exported import FoundationXML
#endif

#if canImport(Glibc)
import Glibc
#endif

/// The disposition of a signal.
struct SignalDisposition: @unchecked Sendable {  // a C struct of plain values
    private let action: sigaction

    /// The current disposition; `nil` if the signal is ignored.
    static func current(_ signal: Int32) -> SignalDisposition? {
        var old = sigaction()
        guard sigaction(signal, nil, &old) == 0, !isIgnoring(old) else { return nil }
        return SignalDisposition(action: old)
    }

    /// Whether the handler, the first field on every platform, is 1 (`SIG_IGN`).
    private static func isIgnoring(_ action: sigaction) -> Bool {
        withUnsafeBytes(of: action) { $0.loadUnaligned(as: UInt.self) } == 1
    }

    func restore(for signal: Int32) {
        var action = action
        sigaction(signal, &action, nil)
    }

    /// Sends the process a signal, unblocking it first as dispatch's threads block signals.
    static func raise(_ signal: Int32) {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, signal)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        kill(getpid(), signal)
    }
}

/// The service manager that started the process, if any.
enum ServiceManager {
    /// Extends the stop timeout (sd_notify, `EXTEND_TIMEOUT_USEC`); does nothing without a service manager.
    static func extendTimeout(by duration: Duration) {
        guard let path = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"] else { return }
        notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=\(Int(duration.seconds * 1e6))", path)
    }

    private static func notify(_ text: String, _ path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard !bytes.isEmpty, bytes.count < capacity else { return }
        // A leading `@` denotes Linux's abstract namespace, where the first byte is 0.
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if os(Linux)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let length = MemoryLayout<sockaddr_un>.size - capacity + bytes.count + (bytes[0] == 0 ? 0 : 1)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = text.withCString { sendto(descriptor, $0, strlen($0), 0, address, socklen_t(length)) }
            }
        }
    }
}
