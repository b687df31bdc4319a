// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// The sessions of services: one for each configuration that differs, kept for ever.
enum ServiceSessions {
    private static let managers = Lock<[ConfigurationKey: SessionManager]>([:])

    static func manager(for configuration: SessionConfiguration?) -> SessionManager {
        guard let configuration else { return .default }
        let key = ConfigurationKey(configuration)
        if let manager = managers.withLock({ $0[key] }) { return manager }
        // Made outside of the lock; who comes second takes the first one's.
        let made = SessionManager(configuration: configuration)
        return managers.withLock { managers in
            let manager = managers[key] ?? made
            managers[key] = manager
            return manager
        }
    }
}

/// What tells configurations apart: everything that is stored in them, whatever later versions add.
///
/// Values count by what they are equal by, objects by their identity, which nobody else gets as the manager keeps them. What can't be
/// compared, such as a closure, counts by its type.
struct ConfigurationKey: Hashable, @unchecked Sendable {  // made of values, types and identities, and never changed
    private let parts: [AnyHashable]

    init(_ configuration: SessionConfiguration) {
        var parts: [AnyHashable] = []
        Self.collect(configuration, into: &parts)
        self.parts = parts
    }

    private static func collect(_ value: Any, into parts: inout [AnyHashable]) {
        let mirror = Mirror(reflecting: value)
        if let queue = value as? DispatchQueue, queue.label.hasPrefix("com.apple.") {
            // The system's own, such as `.main`: a new object each time, on Linux.
            parts.append(queue.label)
        } else if mirror.displayStyle == .class {
            parts.append(ObjectIdentifier(value as AnyObject))
        } else if let type = value as? Any.Type {
            parts.append(ObjectIdentifier(type))
        } else if mirror.displayStyle != .optional, mirror.displayStyle != .collection, let hashable = value as? any Hashable {
            parts.append(AnyHashable(hashable))
        } else {
            // The count separates neighbours: else [a], [] and [], [a] were the same.
            parts += [ObjectIdentifier(type(of: value)), mirror.children.count]
            if mirror.displayStyle == .enum, let label = mirror.children.first?.label { parts.append(label) }
            for child in mirror.children { collect(child.value, into: &parts) }
        }
    }
}
