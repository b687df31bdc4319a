// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Credentials in a profile of the files that AWS's programs share: `~/.aws/credentials`, and if the profile has none there, `~/.aws/config`.
///
/// Only keys that are written there are used (`aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`). Roles, single sign-on and
/// credential processes are not: a profile with them, and without keys, is an error.
public struct AWSProfileCredentials: AWSCredentialsProvider {
    /// The name of the profile.
    public let profile: String
    /// The path of the file of credentials.
    public let credentialsFile: String
    /// The path of the configuration.
    public let configFile: String
    /// Whether a profile was asked for, which then has to exist.
    private let isNamed: Bool

    /// Creates a provider.
    ///
    /// - Parameters:
    ///   - profile: the name of a profile; by default that in `AWS_PROFILE`, otherwise `default`.
    ///   - environment: by default that of the process, as it is now. `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name other files,
    ///     `HOME` the user's directory, for which `~/` stands.
    public init(profile: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment) {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let name = profile ?? variable("AWS_PROFILE")
        self.profile = name ?? "default"
        isNamed = name != nil
        let home = variable("HOME") ?? FileManager.default.homeDirectoryForCurrentUser.path
        func path(_ name: String, _ usual: String) -> String {
            let path = variable(name) ?? usual
            return path.hasBytePrefix("~/") ? "\(home)\(path.dropFirstScalars())" : path
        }
        credentialsFile = path("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
        configFile = path("AWS_CONFIG_FILE", "~/.aws/config")
    }

    /// Reads the files, and returns the credentials of the profile. A file that does not exist is empty. Blocks the thread while it reads.
    ///
    /// - Throws: ``AWSCredentialsError``; ``AWSCredentialsError/notFound(_:)`` only if neither code nor environment asked for a profile.
    public func credentials() throws -> AWSCredentials {
        let files = [
            try AWSProfileFile(readingFrom: credentialsFile, isConfig: false), try AWSProfileFile(readingFrom: configFile, isConfig: true),
        ]
        let found = files.compactMap { file in file.profiles[profile].map { (path: file.path, settings: $0) } }
        for (path, settings) in found {
            if let credentials = try Self.credentials(in: settings, profile, path) { return credentials }
        }
        for (path, settings) in found {
            for setting in Self.unsupported where settings[setting] != nil {
                throw AWSCredentialsError.unsupportedProfile(profile, file: path, setting: setting)
            }
        }
        if let path = found.first?.path, isNamed {
            throw AWSCredentialsError.incompleteProfile(profile, file: path, missing: "aws_access_key_id")
        }
        let places = files.map(\.path).joined(separator: " and ")
        guard !isNamed else { throw AWSCredentialsError.noSuchProfile(profile, files: files.map(\.path)) }
        throw AWSCredentialsError.notFound(["the profile \(profile) in \(places) has no keys"])
    }

    private static let unsupported = ["role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"]

    private static func credentials(in settings: [String: String], _ profile: String, _ path: String) throws -> AWSCredentials? {
        guard let id = settings["aws_access_key_id"] else { return nil }
        guard let key = settings["aws_secret_access_key"] else {
            throw AWSCredentialsError.incompleteProfile(profile, file: path, missing: "aws_secret_access_key")
        }
        return AWSCredentials(
            accessKeyID: id, secretAccessKey: key, sessionToken: settings["aws_session_token"] ?? settings["aws_security_token"])
    }
}
