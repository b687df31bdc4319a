// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// Parses the usual command lines without swift-argument-parser, which looks up some 60 conformances of types at run time, each among all of
/// the program: 19 of the 42 million instructions of a start. It is asked about anything unusual, so that errors and rarely used forms are
/// its own; a test compares both.
extension SendOptions {
    /// Parses words of plain forms: `--name`, `--name value`, `--name=value`, `-n`, `-n value`, several flags as `-nm`, and positional words.
    /// Returns `nil` for anything else, valid or not.
    init?(plain words: [String]) {
        self.init(defaults: ())
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.utf8.first == UInt8(ascii: "-"), word != "-" else {
                self.words.append(word)
                continue
            }
            let isLong = word.utf8.starts(with: "--".utf8)
            if isLong, let equals = word.unicodeScalars.firstIndex(of: "=") {
                guard setValue(String(word.suffix(afterScalarAt: equals)), of: String(word[..<equals])) else { return nil }
            } else if isLong || word.utf8.count == 2 {
                if setFlag(word) { continue }
                guard let value = rest.popFirst(), value.utf8.first != UInt8(ascii: "-") || value == "-", setValue(value, of: word) else {
                    return nil
                }
            } else {
                for letter in word.dropFirst() where !setFlag("-\(letter)") { return nil }
            }
        }
    }

    /// Creates options with the values of an empty command line. Without it they are definitions, which can't be read.
    private init(defaults: Void) {
        self.init()
        (json, form, multipart, ignoreStdin) = (false, false, false, false)
        (raw, bodyFile) = (nil, nil)
        (verbose, headers, bodyOnly, meta) = (false, false, false, false)
        (print, pretty, rawOutput) = (nil, nil, false)
        (filter, pager) = (nil, false)
        (showSecrets, offline, printsCurl, noDecode) = (false, false, false, false)
        (download, resumesDownload, replacesFile) = (nil, false, false)
        (waterfall, har, record, replay, diff) = (nil, nil, nil, nil, false)
        (token, user, authType, netrc, session) = (nil, nil, .basic, false, nil)
        (timeout, deadline, connectTimeout) = (nil, nil, nil)
        (retry, maxRedirects) = (nil, nil)
        (cacert, cert, key, pin, insecure, tls) = (nil, nil, nil, [], false, nil)
        (proxy, interface, ipv4, ipv6, resolve, unixSocket) = (nil, nil, false, false, [], nil)
        (cache, http) = (false, nil)
        (showsHelp, showsVersion, completions) = (false, false, nil)
        self.words = []
    }

    /// Sets a flag. Returns `false` if there is none of the name.
    private mutating func setFlag(_ name: String) -> Bool {
        switch name {
        case "-j", "--json": json = true
        case "-f", "--form": form = true
        case "--multipart": multipart = true
        case "-I", "--ignore-stdin": ignoreStdin = true
        case "-v", "--verbose": verbose = true
        case "-h", "--headers": headers = true
        case "-b", "--body-only": bodyOnly = true
        case "-m", "--meta": meta = true
        case "--raw-output": rawOutput = true
        case "--pager": pager = true
        case "--show-secrets": showSecrets = true
        case "--offline": offline = true
        case "--curl": printsCurl = true
        case "--no-decode": noDecode = true
        case "--continue": resumesDownload = true
        case "--force": replacesFile = true
        case "--diff": diff = true
        case "--netrc": netrc = true
        case "--insecure": insecure = true
        case "-4", "--ipv4": ipv4 = true
        case "-6", "--ipv6": ipv6 = true
        case "--cache": cache = true
        case "--help": showsHelp = true
        case "--version": showsVersion = true
        default: return false
        }
        return true
    }

    /// Sets the value of an option. Returns `false` if there is none of the name, or the value is invalid.
    private mutating func setValue(_ value: String, of name: String) -> Bool {
        // The parser has its own view of empty values.
        guard !value.isEmpty else { return false }
        switch name {
        case "--raw": raw = value
        case "--body": bodyFile = value
        case "-p", "--print": print = value
        case "--filter": filter = value
        case "--download": download = value
        case "--waterfall": waterfall = value
        case "--har": har = value
        case "--record": record = value
        case "--replay": replay = value
        case "--token": token = value
        case "-u", "-a", "--user": user = value
        case "--session": session = value
        case "--cacert": cacert = value
        case "--cert": cert = value
        case "--key": key = value
        case "--pin": pin.append(value)
        case "--proxy": proxy = value
        case "--interface": interface = value
        case "--resolve": resolve.append(value)
        case "--unix-socket": unixSocket = value
        case "--completions": completions = value
        default: return setParsedValue(value, of: name)
        }
        return true
    }

    private mutating func setParsedValue(_ value: String, of name: String) -> Bool {
        func set<Value>(_ property: inout Value?, _ parsed: Value?) -> Bool {
            guard let parsed else { return false }
            property = parsed
            return true
        }
        switch name {
        case "--pretty": return set(&pretty, Pretty(rawValue: value))
        case "-A", "--auth-type":
            guard let type = AuthenticationType(rawValue: value) else { return false }
            authType = type
            return true
        case "--timeout": return set(&timeout, Seconds(argument: value))
        case "--deadline": return set(&deadline, Seconds(argument: value))
        case "--connect-timeout": return set(&connectTimeout, Seconds(argument: value))
        case "--retry": return set(&retry, UInt(value))
        case "--max-redirects": return set(&maxRedirects, Int(value))
        case "--tls": return set(&tls, TLSChoice(rawValue: value))
        case "--http": return set(&http, HTTPChoice(rawValue: value))
        default: return false
        }
    }
}
