// SPDX-License-Identifier: Apache-2.0

/// Returns a function of the C library, or of another one that the process has loaded, by its name; `nil` if there is none.
///
/// For what Swift does not import, or must not be linked: OpenSSL's functions have to be those of the copy that libcurl uses.
package func processFunction<Function>(_ name: String, as type: Function.Type) -> Function? {
    dlopen(nil, RTLD_NOW).flatMap { dlsym($0, name) }.map { unsafeBitCast($0, to: type) }
}
