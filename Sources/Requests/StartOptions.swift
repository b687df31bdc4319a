// SPDX-License-Identifier: Apache-2.0
import CurlewCore

/// The options of one start, of a request or of a group, read once: for the key of a cached response as for what is sent.
final class StartOptions: Sendable {
    /// The newest start of the group that is starting a request in this task.
    @TaskLocal private static var starting: StartOptions?

    /// The start of the group whose options a start in this task gets; `nil` if there is none, or it has none.
    static var ofGroup: StartOptions? { RequestOptions.ofGroup == nil ? nil : starting }

    let options: RequestOptions?
    let deadline: Deadline?
    /// The start of the group whose options are part of these.
    let group = StartOptions.ofGroup

    /// On the thread of the call that starts.
    init(_ own: RequestOptions?) {
        options = RequestOptions.inGroup(own)
        deadline = Deadline.earliest(own?.deadline)
    }

    /// Whether a caller in this task may wait for the end of this start: in a group with options only if that group has begun it, as
    /// another start may connect to what the group's options forbid.
    var isShared: Bool {
        let wanted = Self.ofGroup
        return wanted == nil || wanted === group
    }

    /// Starts requests of a group, which may be on another thread and much later.
    func apply(_ body: () -> Void) {
        guard options != nil || deadline != nil else { return body() }
        var options = options
        options?.deadline = nil
        Deadline.with(deadline) {
            RequestOptions.$ofGroup.withValue(options) { Self.$starting.withValue(self, operation: body) }
        }
    }
}

extension RequestOptions {
    /// A request's own options, and for what they do not set, those of the group that is starting it.
    static func inGroup(_ own: RequestOptions?) -> RequestOptions? { own?.filled(from: ofGroup) ?? ofGroup }
}

/// A start that has been claimed, until the agent runs it or a stop ends it.
struct RequestStart: Sendable {
    let number: Int
    let options: StartOptions
}
