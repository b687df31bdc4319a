// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why there are no credentials.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum AWSCredentialsError: Error, Sendable, Hashable {
    /// There are none where they were looked for; the reasons say where that was.
    case notFound([String])
    /// A variable of the environment is missing although others are set, or its value is invalid.
    case invalidVariable(String)
    /// No file has the profile that was asked for.
    case noSuchProfile(String, files: [String])
    /// The profile in a file lacks a setting.
    case incompleteProfile(String, file: String, missing: String)
    /// The profile in a file gets its credentials by a setting that is not supported.
    case unsupportedProfile(String, file: String, setting: String)
    /// A line of a file is neither a section nor a setting in one.
    case malformedFile(String, line: Int)
    /// A file can't be read, for a reason.
    case unreadableFile(String, String)
    /// The URL in a variable of the environment leads to a host to which a token is not sent without TLS.
    case forbiddenEndpoint(String)
    /// A service, named with its origin, can't be reached.
    case unreachable(String, reason: String)
    /// A service, named with its origin, has answered with this status, and with the code of an error, if it has sent one. A redirect is
    /// among these statuses.
    case refused(String, statusCode: Int, code: String?)
    /// The answer of a service, named with its origin, has no credentials, for a reason.
    case invalidResponse(String, reason: String)
    /// The credentials that a service has sent had expired by its clock, at this time.
    case expired(Date)

    /// The code of an error as a service has sent it; `nil` if it is none.
    static func code(_ text: String?) -> String? {
        text.flatMap { $0.utf8.count <= 64 && $0.utf8.allSatisfy { $0.isNameOfRole || ":#".utf8.contains($0) } ? $0 : nil }
    }
}

extension AWSCredentialsError: CustomStringConvertible, LocalizedError {
    /// What is wrong, as a sentence that names file and profile, without any values.
    public var description: String { Redaction.escaped(text) }

    private var text: String {
        switch self {
        case .notFound(let reasons): "There are no AWS credentials: \(reasons.joined(separator: "; "))."
        case .invalidVariable(let name): "The environment has AWS credentials, but \(name) is missing or invalid."
        case .noSuchProfile(let profile, let files): "There is no AWS profile \(profile) in \(files.joined(separator: " and "))."
        case .incompleteProfile(let profile, let file, let missing): "The AWS profile \(profile) in \(file) has no \(missing)."
        case .unsupportedProfile(let profile, let file, let setting):
            "The AWS profile \(profile) in \(file) gets its credentials by \(setting), which is not supported."
        case .malformedFile(let file, let line): "\(file):\(line) is neither a section nor a setting in one."
        case .unreadableFile(_, let reason): "AWS credentials can't be read: \(reason)."
        case .forbiddenEndpoint(let name):
            "\(name) has to be an https URL, or lead to this computer or to an agent of AWS: a secret is sent to it."
        case .unreachable(let place, let reason): "No AWS credentials from \(place), which can't be reached: \(reason)."
        case .refused(let place, let status, let code):
            "No AWS credentials from \(place), which has answered with status \(status)\(code.map { " and \($0)" } ?? "")."
        case .invalidResponse(let place, let reason): "No AWS credentials from \(place), whose answer is invalid: \(reason)."
        case .expired(let date): "The AWS credentials have expired at \(date.formatted(.iso8601))."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}
