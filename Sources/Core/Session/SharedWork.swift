// SPDX-License-Identifier: Apache-2.0

/// Begins work that is done once for several callers, without what belongs to the first of them: the refresh of a credential, a shared
/// response, an evaluation of a host's certificates. What joins the callers is theirs.
package enum SharedWork {
    /// Calls `body`, which begins such work, without what the library keeps in task-local values for the requests of the calling task
    /// alone: its deadline, and the options of the group that it starts. So the requests of the work are bounded by their own limits, and
    /// each caller's wait for it by the caller's.
    package static func begin<Value>(_ body: () throws -> Value) rethrows -> Value {
        try Deadline.$current.withValue(nil) { try RequestOptions.$ofGroup.withValue(nil, operation: body) }
    }

    /// Begins such work as a task of its own.
    @discardableResult
    package static func task(priority: TaskPriority? = nil, _ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        begin { Task(priority: priority, operation: operation) }
    }
}
