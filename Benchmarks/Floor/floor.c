// SPDX-License-Identifier: Apache-2.0
//
// The floor: what the same requests cost in C over the same libcurl, with nothing in between.
//
//     floor get URL COUNT INFLIGHT [--h2] [--multiplex] [--cold] [--ca FILE] [--beside WAITING SLOW-URL]
//     floor wait URL COUNT
//     floor download URL FILE
//     floor upload URL FILE
//
// HTTP/2 has one stream a connection without --multiplex. TLS sessions are resumed.
// One thread, one curl_multi_poll loop, pooled easy handles. Each request resets its handle and sets every option again,
// as a library must that knows nothing about the next request. Prints one line of JSON.

#define _GNU_SOURCE
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { fileBufferSize = 256 * 1024, longestWaitMilliseconds = 1000, idleTimeoutSeconds = 60 };

typedef struct {
    const char *url;
    const char *caFile;
    bool http2;
    bool multiplex;
    bool cold;
    long waiting;
    const char *slowURL;
    CURLSH *share;
} Options;

typedef struct {
    char *bytes;
    size_t count;
    size_t capacity;
} Buffer;

// One request in flight. The pool owns it; the handle, the buffers and the connection live from request to request.
typedef struct {
    CURL *handle;
    struct curl_slist *headers;
    Buffer head;
    Buffer body;
    int file;
} Transfer;

typedef struct {
    long requests;
    long failed;
    long long bytes;
} Tally;

typedef struct {
    double wall;
    double cpu;
} Clock;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "floor: %s: %s\n", what, why);
    exit(1);
}

// MARK: - Measuring

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static Clock clockNow(void) {
    struct timespec now;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &now);
    getrusage(RUSAGE_SELF, &usage);
    return (Clock){
        .wall = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
        .cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime),
    };
}

// ru_maxrss would also count the program that started this one.
static long residentKiB(const char *pattern) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long size = 0;
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, pattern, &size) == 1) break;
    }
    if (status) fclose(status);
    return size;
}

static void report(Tally tally, Clock start, Clock end, long baseKiB) {
    double cpu = end.cpu - start.cpu;
    printf("{\"program\": \"floor\", \"requests\": %ld, \"failed\": %ld, \"bytes\": %lld, "
           "\"wall_seconds\": %.6f, \"cpu_seconds\": %.6f, \"cpu_us_per_request\": %.3f, \"base_rss_kib\": %ld, "
           "\"peak_rss_kib\": %ld, \"libcurl\": \"%s\"}\n",
           tally.requests, tally.failed, tally.bytes, end.wall - start.wall, cpu,
           tally.requests ? cpu * 1e6 / (double)tally.requests : 0, baseKiB, residentKiB("VmHWM: %ld"),
           curl_version_info(CURLVERSION_NOW)->version);
}

// MARK: - Callbacks

static bool reserve(Buffer *buffer, size_t capacity) {
    if (capacity <= buffer->capacity) return true;
    char *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) return false;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

static bool append(Buffer *buffer, const char *bytes, size_t count) {
    size_t wanted = buffer->count + count;
    if (wanted > buffer->capacity && !reserve(buffer, wanted < 4096 ? 4096 : wanted * 2)) return false;
    memcpy(buffer->bytes + buffer->count, bytes, count);
    buffer->count = wanted;
    return true;
}

static size_t receiveHead(char *bytes, size_t size, size_t count, void *context) {
    Transfer *transfer = context;
    return append(&transfer->head, bytes, size * count) ? size * count : 0;
}

static size_t receiveBody(char *bytes, size_t size, size_t count, void *context) {
    Transfer *transfer = context;
    return append(&transfer->body, bytes, size * count) ? size * count : 0;
}

static bool flush(Transfer *transfer) {
    size_t written = 0;
    while (written < transfer->body.count) {
        ssize_t result = write(transfer->file, transfer->body.bytes + written, transfer->body.count - written);
        if (result < 0 && errno == EINTR) continue;
        if (result < 0) return false;
        written += (size_t)result;
    }
    transfer->body.count = 0;
    return true;
}

// libcurl hands over 16 KiB at most; a write of that size would cost more in system calls than in copying.
static size_t receiveFile(char *bytes, size_t size, size_t count, void *context) {
    Transfer *transfer = context;
    size_t length = size * count;
    if (transfer->body.count + length > fileBufferSize && !flush(transfer)) return 0;
    return append(&transfer->body, bytes, length) ? length : 0;
}

static size_t sendFile(char *bytes, size_t size, size_t count, void *context) {
    Transfer *transfer = context;
    ssize_t result;
    do {
        result = read(transfer->file, bytes, size * count);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? CURL_READFUNC_ABORT : (size_t)result;
}

// MARK: - One request

static void addHeader(Transfer *transfer, const char *line) {
    struct curl_slist *headers = curl_slist_append(transfer->headers, line);
    if (!headers) fail("headers", "out of memory");
    transfer->headers = headers;
}

static void setProtocols(CURL *handle) {
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
}

static void setConnectionOptions(CURL *handle, const Options *options) {
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 30000L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)idleTimeoutSeconds);
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)(options->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    // Without it libcurl opens a connection for each request that starts before the first connection has spoken HTTP/2.
    curl_easy_setopt(handle, CURLOPT_PIPEWAIT, options->multiplex ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, options->cold ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_FORBID_REUSE, options->cold ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_SHARE, options->share);
    if (options->caFile) curl_easy_setopt(handle, CURLOPT_CAINFO, options->caFile);
}

static void prepare(Transfer *transfer, const Options *options) {
    CURL *handle = transfer->handle;
    curl_easy_reset(handle);
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    transfer->head.count = 0;
    transfer->body.count = 0;

    // What Curlew sends, to the byte: libcurl puts a request together with `printf`, a byte at a time.
    addHeader(transfer, "Accept-Encoding: gzip, deflate");

    curl_easy_setopt(handle, CURLOPT_URL, options->url);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, receiveHead);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receiveBody);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    setProtocols(handle);
    setConnectionOptions(handle, options);
}

static void prepareRequest(Transfer *transfer, const Options *options) {
    prepare(transfer, options);
    curl_easy_setopt(transfer->handle, CURLOPT_TIMEOUT_MS, 60000L);
}

static void prepareDownload(Transfer *transfer, const Options *options) {
    prepare(transfer, options);
    curl_easy_setopt(transfer->handle, CURLOPT_BUFFERSIZE, (long)fileBufferSize);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEFUNCTION, receiveFile);
    if (!reserve(&transfer->body, fileBufferSize)) fail("download", "out of memory");
}

static void prepareUpload(Transfer *transfer, const Options *options, long long size) {
    prepare(transfer, options);
    // libcurl adds "Expect: 100-continue" to large bodies; many servers answer 417. An empty value removes it.
    addHeader(transfer, "Expect:");
    curl_easy_setopt(transfer->handle, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(transfer->handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(transfer->handle, CURLOPT_UPLOAD_BUFFERSIZE, (long)fileBufferSize);
    curl_easy_setopt(transfer->handle, CURLOPT_READFUNCTION, sendFile);
    curl_easy_setopt(transfer->handle, CURLOPT_READDATA, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
}

static void finish(Transfer *transfer, CURLcode code, Tally *tally) {
    long status = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
    tally->requests += 1;
    tally->bytes += (long long)transfer->body.count;
    if (code == CURLE_OK && status >= 200 && status < 300) return;
    // The first is enough to see what is wrong.
    if (tally->failed++ == 0) fprintf(stderr, "floor: status %ld, %s\n", status, curl_easy_strerror(code));
}

// MARK: - The loop

static CURLM *makeMulti(long inFlight, const Options *options) {
    CURLM *multi = curl_multi_init();
    if (!multi) fail("multi", "out of memory");
    // The limit counts busy connections too.
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 2 * inFlight + 16);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, options->multiplex ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
    return multi;
}

// Takes one finished transfer out of the multi handle; NULL when there is none.
static Transfer *nextFinished(CURLM *multi, CURLcode *code) {
    int remaining;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &remaining))) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL *handle = message->easy_handle;
        Transfer *transfer = NULL;
        *code = message->data.result;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&transfer);
        curl_multi_remove_handle(multi, handle);
        return transfer;
    }
    return NULL;
}

static Tally runRequests(CURLM *multi, Transfer *pool, long inFlight, long count, const Options *options) {
    Tally tally = {0};
    long started = 0;
    for (; started < inFlight && started < count; started++) {
        prepareRequest(&pool[started], options);
        curl_multi_add_handle(multi, pool[started].handle);
    }
    while (tally.requests < count) {
        int running;
        CURLcode code;
        Transfer *transfer;
        curl_multi_perform(multi, &running);
        while ((transfer = nextFinished(multi, &code))) {
            finish(transfer, code, &tally);
            if (started == count) continue;
            started += 1;
            prepareRequest(transfer, options);
            curl_multi_add_handle(multi, transfer->handle);
        }
        if (tally.requests < count) curl_multi_poll(multi, NULL, 0, longestWaitMilliseconds, NULL);
    }
    return tally;
}

static Tally runOne(CURLM *multi, Transfer *transfer) {
    Tally tally = {0};
    int running = 1;
    CURLcode code = CURLE_OK;
    curl_multi_add_handle(multi, transfer->handle);
    while (running) {
        curl_multi_perform(multi, &running);
        if (running) curl_multi_poll(multi, NULL, 0, longestWaitMilliseconds, NULL);
    }
    nextFinished(multi, &code);
    finish(transfer, code, &tally);
    return tally;
}

// Without it no easy handle would know the TLS sessions of the others.
static CURLSH *makeShare(void) {
    CURLSH *share = curl_share_init();
    if (!share) fail("share", "out of memory");
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return share;
}

static Transfer *makePool(long count) {
    Transfer *pool = calloc((size_t)count, sizeof *pool);
    if (!pool) fail("pool", "out of memory");
    for (long index = 0; index < count; index++) {
        pool[index].file = -1;
        pool[index].handle = curl_easy_init();
        if (!pool[index].handle) fail("pool", "out of memory");
    }
    return pool;
}

static void removePool(Transfer *pool, long count) {
    for (long index = 0; index < count; index++) {
        curl_easy_cleanup(pool[index].handle);
        curl_slist_free_all(pool[index].headers);
        free(pool[index].head.bytes);
        free(pool[index].body.bytes);
    }
    free(pool);
}

// MARK: - Commands

// Makes requests that are not answered, and returns when the server has got them all. They wait until the process ends.
static void hold(CURLM *multi, const Options *options) {
    char url[256];
    Transfer *waiting = makePool(options->waiting);
    Transfer *asking = makePool(1);
    Options slow = *options;
    slow.url = url;
    snprintf(url, sizeof url, "%s/hold", options->slowURL);
    for (long index = 0; index < options->waiting; index++) {
        prepareRequest(&waiting[index], &slow);
        curl_multi_add_handle(multi, waiting[index].handle);
    }
    snprintf(url, sizeof url, "%s/held", options->slowURL);
    // The answer is as long as the number of requests that the server holds.
    while (runRequests(multi, asking, 1, 1, &slow).bytes < options->waiting) usleep(20000);
}

static int get(const Options *options, long count, long inFlight) {
    CURLM *multi = makeMulti(inFlight + options->waiting, options);
    if (options->waiting) hold(multi, options);
    Transfer *pool = makePool(inFlight);

    // The first one alone: it brings the TLS session, or the HTTP/2 connection, that the others share.
    Tally first = runRequests(multi, pool, 1, 1, options);
    Tally warmUp = runRequests(multi, pool, inFlight, inFlight, options);
    long base = residentKiB("VmRSS: %ld");
    Clock start = clockNow();
    Tally tally = runRequests(multi, pool, inFlight, count, options);
    report(tally, start, clockNow(), base);
    // Its transfers go with the process.
    long failed = first.failed + warmUp.failed + tally.failed;
    if (options->waiting) return failed ? 1 : 0;

    removePool(pool, inFlight);
    curl_multi_cleanup(multi);
    return failed ? 1 : 0;
}

// All at once, of a server that answers late: what a waiting request takes in memory.
static int waitForAnswers(const Options *options, long count) {
    CURLM *multi = makeMulti(count, options);
    Transfer *first = makePool(1);
    Options fast = *options;
    char url[256];
    snprintf(url, sizeof url, "%.*s/held", (int)(strlen(options->url) - strlen("/slow")), options->url);
    fast.url = url;
    Tally warmUp = runRequests(multi, first, 1, 1, &fast);
    long base = residentKiB("VmRSS: %ld");
    Clock start = clockNow();
    Transfer *pool = makePool(count);
    Tally tally = runRequests(multi, pool, count, count, options);
    report(tally, start, clockNow(), base);
    removePool(pool, count);
    removePool(first, 1);
    curl_multi_cleanup(multi);
    return warmUp.failed || tally.failed ? 1 : 0;
}

static int transferFile(const char *mode, const Options *options, const char *path) {
    bool isUpload = strcmp(mode, "upload") == 0;
    CURLM *multi = makeMulti(1, options);
    Transfer transfer = {.handle = curl_easy_init()};
    if (!transfer.handle) fail(mode, "out of memory");

    long base = residentKiB("VmRSS: %ld");
    Clock start = clockNow();
    transfer.file = isUpload ? open(path, O_RDONLY | O_CLOEXEC) : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct stat status;
    if (transfer.file < 0 || fstat(transfer.file, &status) != 0) fail(path, strerror(errno));
    if (isUpload) {
        prepareUpload(&transfer, options, status.st_size);
    } else {
        prepareDownload(&transfer, options);
    }
    Tally tally = runOne(multi, &transfer);
    if (!isUpload && !flush(&transfer)) fail(path, strerror(errno));
    if (fstat(transfer.file, &status) != 0 || close(transfer.file) != 0) fail(path, strerror(errno));
    tally.bytes = status.st_size;
    report(tally, start, clockNow(), base);

    curl_easy_cleanup(transfer.handle);
    curl_slist_free_all(transfer.headers);
    free(transfer.head.bytes);
    free(transfer.body.bytes);
    curl_multi_cleanup(multi);
    return tally.failed ? 1 : 0;
}

static void printUsageAndExit(void) {
    fputs("usage: floor get URL COUNT INFLIGHT [--h2] [--multiplex] [--cold] [--ca FILE] [--beside WAITING SLOW-URL]\n"
          "       floor wait URL COUNT\n"
          "       floor download URL FILE\n"
          "       floor upload URL FILE\n", stderr);
    exit(2);
}

// Puts what is no option into `positional` and returns how much that is.
static int readArguments(int count, char **arguments, Options *options, const char *positional[4]) {
    int positionals = 0;
    for (int index = 1; index < count; index++) {
        const char *argument = arguments[index];
        if (strcmp(argument, "--h2") == 0) {
            options->http2 = true;
        } else if (strcmp(argument, "--multiplex") == 0) {
            options->multiplex = true;
        } else if (strcmp(argument, "--cold") == 0) {
            options->cold = true;
        } else if (strcmp(argument, "--ca") == 0 && index + 1 < count) {
            options->caFile = arguments[++index];
        } else if (strcmp(argument, "--beside") == 0 && index + 2 < count) {
            options->waiting = atol(arguments[++index]);
            options->slowURL = arguments[++index];
        } else if (argument[0] != '-' && positionals < 4) {
            positional[positionals++] = argument;
        } else {
            printUsageAndExit();
        }
    }
    return positionals;
}

static long positive(const char *text) {
    long number = atol(text);
    if (number < 1) fail(text, "COUNT and INFLIGHT are at least 1");
    return number;
}

int main(int count, char **arguments) {
    Options options = {0};
    const char *positional[4];
    int positionals = readArguments(count, arguments, &options, positional);
    if (positionals < 3) printUsageAndExit();
    const char *command = positional[0];
    options.url = positional[1];

    // CURLOPT_NOSIGNAL also keeps libcurl from ignoring it.
    signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    options.share = makeShare();
    int result = 2;
    if (strcmp(command, "get") == 0 && positionals == 4) {
        result = get(&options, positive(positional[2]), positive(positional[3]));
    } else if (strcmp(command, "wait") == 0 && positionals == 3) {
        result = waitForAnswers(&options, positive(positional[2]));
    } else if ((strcmp(command, "download") == 0 || strcmp(command, "upload") == 0) && positionals == 3) {
        result = transferFile(command, &options, positional[2]);
    } else {
        printUsageAndExit();
    }
    // Transfers that were left waiting still use it.
    if (!options.waiting) {
        curl_share_cleanup(options.share);
        curl_global_cleanup();
    }
    return result;
}
