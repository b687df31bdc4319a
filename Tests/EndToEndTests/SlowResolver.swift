// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport

/// A library that a process preloads so that names below `slow.test` take three seconds to fail to resolve.
///
/// Compiled at run time, because no product of the package may define system functions.
struct SlowResolver {
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <netdb.h>
        #include <string.h>
        #include <unistd.h>

        int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
            const char *end = name ? strstr(name, ".slow.test") : NULL;
            if (end != NULL) {
                sleep(3);
                return EAI_NONAME;
            }
            int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
            return next(name, service, hints, result);
        }
        """

    private let directory: TemporaryDirectory

    /// Throws a ``TestError`` if there is no C compiler.
    init() async throws {
        directory = try TemporaryDirectory()
        let (file, library) = (directory.file("resolver.c"), directory.file("resolver.so"))
        try Data(Self.source.utf8).write(to: file)
        guard let compiler = ChildProcess.path(of: "clang") ?? ChildProcess.path(of: "cc") else { throw TestError("no C compiler") }
        let (status, _) = try await ChildProcess(compiler, ["-shared", "-fPIC", "-o", library.path, file.path]).finish()
        guard status == 0 else { throw TestError("\(compiler): \(status)") }
    }

    /// The environment variables that preload the library.
    var environment: [String: String] { ["LD_PRELOAD": directory.file("resolver.so").path] }
}
