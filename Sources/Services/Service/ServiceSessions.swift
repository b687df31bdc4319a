// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// The sessions of services: one per distinct configuration, retained for the lifetime of the process.
enum ServiceSessions {
    private static let managers = Lock<[ConfigurationKey: SessionManager]>([:])

    static func manager(for configuration: SessionConfiguration?) -> SessionManager {
        guard let configuration else { return .default }
        let key = ConfigurationKey(configuration)
        if let manager = managers.withLock({ $0[key] }) { return manager }
        // Made outside the lock, because that takes long; if two tasks race, the first manager stored is used.
        let made = SessionManager(configuration: configuration)
        return managers.withLock { managers in
            let manager = managers[key] ?? made
            managers[key] = manager
            return manager
        }
    }
}

/// Identifies a configuration by everything stored in it, found by reflection, so that properties added later are included.
///
/// Hashable values compare by equality. Objects compare by identity, which can't be reused because the manager retains them. What can't be
/// compared, such as a closure, is represented by its type.
struct ConfigurationKey: Hashable, @unchecked Sendable {  // made of values, types and identities, and never changed
    private let parts: [AnyHashable]

    init(_ configuration: SessionConfiguration) {
        var parts: [AnyHashable] = []
        Self.collect(configuration, into: &parts)
        self.parts = parts
    }

    private static func collect(_ value: Any, into parts: inout [AnyHashable]) {
        let mirror = Mirror(reflecting: value)
        if let queue = value as? DispatchQueue, queue.label.hasBytePrefix("com.apple.") {
            // The system's own queues, such as `.main`: on Linux, a new object on each access.
            parts.append(queue.label)
        } else if mirror.displayStyle == .class {
            parts.append(ObjectIdentifier(value as AnyObject))
        } else if let text = value as? String {
            // Texts are equal if they are canonically equivalent: another user's name, another file.
            parts.append(Array(text.utf8))
        } else if let type = value as? Any.Type {
            parts.append(ObjectIdentifier(type))
        } else if mirror.displayStyle != .optional, mirror.displayStyle != .collection, let hashable = value as? any Hashable {
            parts.append(AnyHashable(hashable))
        } else {
            // The count delimits neighbours: without it, [a], [] would equal [], [a].
            parts += [ObjectIdentifier(type(of: value)), mirror.children.count]
            if mirror.displayStyle == .enum, let label = mirror.children.first?.label { parts.append(label) }
            for child in mirror.children { collect(child.value, into: &parts) }
        }
    }
}
