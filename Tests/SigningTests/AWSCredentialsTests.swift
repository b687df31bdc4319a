// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewSigning

// A3.1
@Suite struct AWSCredentialsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Environment

    @Test func `the environment has keys, token and expiration`() throws {
        var environment = ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": ""]
        #expect(try AWSEnvironmentCredentials(environment).credentials() == AWSCredentials(accessKeyID: "id", secretAccessKey: "key"))
        environment["AWS_SECURITY_TOKEN"] = "token"
        environment["AWS_CREDENTIAL_EXPIRATION"] = "2013-05-24T00:00:00Z"
        let expected = AWSCredentials(
            accessKeyID: "id", secretAccessKey: "key", sessionToken: "token", expiration: Date(timeIntervalSince1970: 1_369_353_600))
        #expect(try AWSEnvironmentCredentials(environment).credentials() == expected)
        environment["AWS_CREDENTIAL_EXPIRATION"] = "soon"
        #expect(throws: AWSCredentialsError.invalidVariable("AWS_CREDENTIAL_EXPIRATION")) {
            try AWSEnvironmentCredentials(environment).credentials()
        }
    }

    @Test func `half of a key is an error, none is not`() async throws {
        let half = AWSEnvironmentCredentials(["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": ""])
        let none = AWSEnvironmentCredentials(["AWS_ACCESS_KEY_ID": ""])
        let own = AWSCredentials(accessKeyID: "own", secretAccessKey: "key")
        await #expect(throws: AWSCredentialsError.invalidVariable("AWS_SECRET_ACCESS_KEY")) {
            try await AWSCredentialsChain([half, own]).credentials()
        }
        #expect(try await AWSCredentialsChain([none, own]).credentials() == own)
        await #expect(throws: AWSCredentialsError.notFound(["the environment has no AWS_ACCESS_KEY_ID"])) {
            try await AWSCredentialsChain([none]).credentials()
        }
    }

    // MARK: Files

    /// A provider whose user has these files.
    private func provider(_ files: [String: String], profile: String? = nil, _ variables: [String: String] = [:]) throws
        -> AWSProfileCredentials
    {
        let folder = directory.url.appendingPathComponent(".aws")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, text) in files { try Data(text.utf8).write(to: folder.appendingPathComponent(name)) }
        return AWSProfileCredentials(profile: profile, environment: variables.merging(["HOME": directory.url.path]) { own, _ in own })
    }

    private static let usual = """
        ; a comment
        [default]
        aws_access_key_id = id1 # another
        aws_secret_access_key=k/e+y=1#

        [dev]\t# a comment
          AWS_ACCESS_KEY_ID\t=\tid2
          aws_secret_access_key = key2
          aws_session_token = token2
        """

    @Test func `profiles of both files are found, those of credentials first`() throws {
        let config = """
            [default]
            region = eu-central-1
            aws_access_key_id = unused
            s3 =
              addressing_style = path
              no setting
            output = json
            [profile "a b"]
            aws_access_key_id = id3
            aws_secret_access_key = key3
            [sso-session x]
            aws_access_key_id = none
            [dev]
            [profile]
            aws_secret_access_key = none
            """
        let files = ["credentials": Self.usual, "config": config.replacing("\n", with: "\r\n")]
        #expect(try provider(files).credentials() == AWSCredentials(accessKeyID: "id1", secretAccessKey: "k/e+y=1#"))
        #expect(
            try provider(files, [:].merging(["AWS_PROFILE": "dev"]) { $1 }).credentials()
                == AWSCredentials(accessKeyID: "id2", secretAccessKey: "key2", sessionToken: "token2"))
        #expect(
            try provider(files, profile: "a b", ["AWS_PROFILE": "dev"]).credentials()
                == AWSCredentials(accessKeyID: "id3", secretAccessKey: "key3"))
        #expect(throws: AWSCredentialsError.self) { try provider(files, profile: "sso-session x").credentials() }
    }

    @Test func `variables name other files`() throws {
        let other = try directory.write(Data("[default]\naws_access_key_id=id4\naws_secret_access_key=key4".utf8), to: "other")
        for path in [other.path, "~/other"] {
            let found = try provider(["credentials": Self.usual], ["AWS_SHARED_CREDENTIALS_FILE": path]).credentials()
            #expect(found.accessKeyID == "id4")
        }
    }

    @Test func `errors name file and profile, and no values`() throws {
        let credentials = directory.url.appendingPathComponent(".aws/credentials").path
        let config = directory.url.appendingPathComponent(".aws/config").path
        func error(_ text: String, config: String = "", profile: String? = nil) -> AWSCredentialsError? {
            #expect(throws: AWSCredentialsError.self) {
                _ = try provider(["credentials": text, "config": config], profile: profile).credentials()
            }
        }
        #expect(error("[default]\nregion=x") == .notFound(["the profile default in \(credentials) and \(config) has no keys"]))
        #expect(error("", profile: "dev") == .noSuchProfile("dev", files: [credentials, config]))
        #expect(error("[dev]", profile: "dev") == .incompleteProfile("dev", file: credentials, missing: "aws_access_key_id"))
        let half = error("[default]\naws_access_key_id=secret\naws_secret_access_key=\n")
        #expect(half == .incompleteProfile("default", file: credentials, missing: "aws_secret_access_key"))
        #expect(half?.description == "The AWS profile default in \(credentials) has no aws_secret_access_key.")
        #expect(error("", config: "[default]\nrole_arn=x") == .unsupportedProfile("default", file: config, setting: "role_arn"))
        #expect(error("a=b") == .malformedFile(credentials, line: 1))
        #expect(error("[default]\nsecret") == .malformedFile(credentials, line: 2))
        #expect(error("[default") == .malformedFile(credentials, line: 1))
        try Data([0x5B, 0xFF, 0x5D]).write(to: URL(fileURLWithPath: credentials))
        #expect(throws: AWSCredentialsError.unreadableFile(credentials, "the file \"\(credentials)\" is not UTF-8")) {
            try provider([:]).credentials()
        }
        let folder = directory.url.path
        #expect {
            try provider([:], ["AWS_CONFIG_FILE": folder, "AWS_SHARED_CREDENTIALS_FILE": "/none"]).credentials()
        } throws: { error in
            guard case AWSCredentialsError.unreadableFile(folder, let reason) = error else { return false }
            return reason.containsScalars(of: folder)
        }
    }

    @Test func `without files there are no credentials`() async throws {
        let provider = AWSProfileCredentials(environment: ["HOME": directory.file("none").path])
        await #expect {
            try await AWSCredentialsChain([provider]).credentials()
        } throws: { error in
            guard case AWSCredentialsError.notFound(let reasons) = error else { return false }
            return reasons.count == 1
        }
    }
}
