/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl for Swift: wrappers of its variadic functions, one for each type of argument, and everything that depends on its version.
   The only file of the project that includes <curl/curl.h>. */
#ifndef CCURLEW_H
#define CCURLEW_H

#include <curl/curl.h>
#include <net/if.h>
#include <stdbool.h>
#include <zlib.h>

#ifdef __linux__ /* not in Swift's C library module */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#endif

#if LIBCURL_VERSION_NUM < 0x075800
#error "Curlew needs libcurl 7.88.0 or later"
#endif

/* Initializes libcurl once per process. Thread-safe. */
CURLcode ccurlew_global_init(void);

/* Frees OpenSSL's data for the calling thread, which otherwise happens only after the thread appears to have ended. */
void ccurlew_thread_stop(void);

/* A thread-local pointer, initially NULL. */
void *ccurlew_thread_pointer(void);
void ccurlew_set_thread_pointer(void *pointer);

/* The version and features of the libcurl loaded into this process. */
const curl_version_info_data *ccurlew_version_info(void);

/* curl_easy_setopt, by type of argument. */
CURLcode ccurlew_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurlew_set_offset(CURL *easy, CURLoption option, curl_off_t value);
CURLcode ccurlew_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode ccurlew_set_pointer(CURL *easy, CURLoption option, void *value);
/* The bytes are copied. */
CURLcode ccurlew_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t length);

typedef size_t (*ccurlew_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurlew_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*ccurlew_prereq_callback)(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port);
typedef curl_socket_t (*ccurlew_opensocket_callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*ccurlew_closesocket_callback)(void *context, curl_socket_t socket);
CURLcode ccurlew_set_data_callback(CURL *easy, CURLoption option, ccurlew_data_callback callback);
CURLcode ccurlew_set_seek_callback(CURL *easy, ccurlew_seek_callback callback);
CURLcode ccurlew_set_prereq_callback(CURL *easy, ccurlew_prereq_callback callback);
CURLcode ccurlew_set_opensocket_callback(CURL *easy, ccurlew_opensocket_callback callback);
CURLcode ccurlew_set_closesocket_callback(CURL *easy, ccurlew_closesocket_callback callback);

/* Appends the lines of trailers to libcurl's list, which libcurl frees. */
typedef int (*ccurlew_trailer_callback)(struct curl_slist **list, void *context);
CURLcode ccurlew_set_trailer_callback(CURL *easy, ccurlew_trailer_callback callback);

/* curl_easy_getinfo, by type of result; 0 or NULL on failure. */
long ccurlew_get_long(CURL *easy, CURLINFO info);
curl_off_t ccurlew_get_offset(CURL *easy, CURLINFO info);
const char *ccurlew_get_string(CURL *easy, CURLINFO info);
/* The object set as CURLOPT_PRIVATE. */
void *ccurlew_get_private(CURL *easy);
curl_socket_t ccurlew_get_active_socket(CURL *easy);

/* The TLS version ("TLSv1.3") and cipher of the connection in use; NULL without TLS, or if libcurl's TLS library is not OpenSSL.
   Valid as long as the connection; only to be called while the transfer has one. */
const char *ccurlew_tls_version(CURL *easy);
const char *ccurlew_tls_cipher(CURL *easy);

/* Whether TLS has negotiated HTTP/2 for the connection in use (ALPN, RFC 7301); false if that is unknown. */
bool ccurlew_tls_is_http2(CURL *easy);

/* Sends close_notify (RFC 8446, section 6.1), after which no more bytes can be sent; the other direction stays open.
   False if the socket does not accept it now: call again when the socket is writable. */
bool ccurlew_tls_end_sending(CURL *easy);

/* OpenSSL's object for the connection that a transfer uses; NULL without TLS, or with another library. */
const void *ccurlew_tls_session(CURL *easy);

/* Whether the host's certificate has alternative names of a host: names of DNS or IP addresses (RFC 5280, section 4.2.1.6); true if that is
   unknown. */
bool ccurlew_tls_has_names(CURL *easy);
/* The same for an X509. */
bool ccurlew_names_host(const void *x509);

/* Sets OpenSSL's message callback on a connection: written or received, version, content type, bytes, session, context.
   False if that is not possible. */
typedef void (*ccurlew_tls_message_callback)(
    int is_written, int version, int kind, const void *bytes, size_t count, void *session, void *context);
bool ccurlew_tls_watch(CURL *easy, ccurlew_tls_message_callback callback, void *context);

/* A certificate in DER; valid during the call only. */
typedef void (*ccurlew_certificate_callback)(void *context, const unsigned char *bytes, size_t length);

/* Passes the certificates of a connection (ccurlew_tls_session) to the callback, the leaf first: those that the host sent, in the order
   sent, or the path from the leaf that TLS has built, as far as each was signed by the next. False if they are not available: without TLS,
   on a resumed session, or if libcurl's TLS library is not OpenSSL. */
bool ccurlew_tls_sent_certificates(const void *ssl, ccurlew_certificate_callback callback, void *context);
bool ccurlew_tls_path(const void *ssl, ccurlew_certificate_callback callback, void *context);

/* Whether the host of the connection in use has requested a client certificate. */
bool ccurlew_tls_requests_certificate(CURL *easy);
/* Passes the names of the issuers that the host has named with its request, in DER, to the callback; none if it accepts those of any. */
void ccurlew_tls_requested_issuers(const void *ssl, ccurlew_certificate_callback callback, void *context);

/* Borrowed bytes. */
struct ccurlew_bytes {
    const unsigned char *bytes;
    size_t length;
};

/* Trust anchors; NULL for absent ones. */
struct ccurlew_anchors {
    const struct ccurlew_bytes *certificates; /* in DER */
    size_t count;
    const char *file;      /* of certificates in PEM */
    const char *directory; /* of certificates in PEM, named by hash */
    const char *crl_file;  /* of revocation lists in PEM; if set, every certificate of the path is checked */
};

/* Verifies a chain of certificates, the leaf first, for TLS servers and the current time (RFC 5280, section 6), and passes the path to the
   callback, as far as it could be built and each was signed by the next. Returns NULL if it is valid, otherwise the reason. Reads the
   files, and so may block. */
const char *ccurlew_verify(const struct ccurlew_bytes *chain, size_t count, const struct ccurlew_anchors *anchors,
                           ccurlew_certificate_callback callback, void *context);

/* The locations of certificates that the environment names, as for OpenSSL and curl; NULL if it names none. */
const char *ccurlew_environment_ca_file(void);
const char *ccurlew_environment_ca_directory(void);

/* The default locations of certificates: the environment's, else libcurl's, or where these are missing on this system, the usual ones; NULL
   if there is none. */
const char *ccurlew_default_ca_file(bool uses_environment);
const char *ccurlew_default_ca_directory(bool uses_environment);

/* Makes libcurl read the default authorities once, rather than for each connection. libcurl caches the certificates of a file, but
   not if there is a directory as well, as on Debian: each connection then takes 20 ms of the event loop. The directory is added to
   libcurl's cached store. */
CURLcode ccurlew_cache_default_authorities(CURL *easy, bool uses_environment);

/* Refuses certificates without subject alternative names in the handshakes of a transfer: those with its proxy, and with the server that
   resolves its names, of which there is no later sight. To be called after the authorities are set. */
CURLcode ccurlew_require_names(CURL *easy);

/* What decides in the handshakes of an SSL_CTX, which owns it, whether a client certificate is presented: called when the host has
   requested one and TLS has verified the host's own, which is the last moment before ours is sent. False ends the handshake. */
struct ccurlew_presentation_guard {
    void *context;
    bool asks; /* also called where there is no certificate to present */
    bool (*may_present)(void *context, const void *ssl);
    void (*release)(void *context);
};
/* Makes the guard of a connection for the object set as CURLOPT_PRIVATE. */
typedef struct ccurlew_presentation_guard (*ccurlew_presentation_callback)(void *member);
/* Guards the connections that a transfer makes; libcurl itself checks names and pins only after the handshake. Also requires names, as
   ccurlew_require_names does, in whose place it is then called. No effect if libcurl's TLS library is not OpenSSL. */
CURLcode ccurlew_guard_presentation(CURL *easy, bool requires_names, ccurlew_presentation_callback callback);
/* Whether the host's certificate is for a name or an address (RFC 9525, section 6); for a guard. */
bool ccurlew_tls_names(const void *ssl, const char *host);

/* curl_multi_setopt and curl_share_setopt, by type of argument. */
typedef int (*ccurlew_socket_callback)(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context);
typedef int (*ccurlew_timer_callback)(CURLM *multi, long milliseconds, void *context);
CURLMcode ccurlew_multi_set_long(CURLM *multi, CURLMoption option, long value);
CURLMcode ccurlew_multi_set_pointer(CURLM *multi, CURLMoption option, void *value);
CURLMcode ccurlew_multi_set_socket_callback(CURLM *multi, ccurlew_socket_callback callback);
CURLMcode ccurlew_multi_set_timer_callback(CURLM *multi, ccurlew_timer_callback callback);
CURLSHcode ccurlew_share_tls_sessions(CURLSH *share);

/* The address for which a socket is to be opened; libcurl allocates as much memory as it needs beyond the declared type. */
const struct sockaddr *ccurlew_address(const struct curl_sockaddr *address);

/* inflateInit2 and deflateInit2, which are macros in zlib. */
int ccurlew_inflate_init(z_stream *stream, int window_bits);
int ccurlew_deflate_init(z_stream *stream, int level, int window_bits);

/* fgetxattr and fsetxattr, of a file's own attributes: the length of the value, and 0; -1 with errno. */
ssize_t ccurlew_get_attribute(int descriptor, const char *name, void *value, size_t size);
int ccurlew_set_attribute(int descriptor, const char *name, const void *value, size_t size);

/* Whether a domain, in lower case, is a public suffix according to libpsl: 1 or 0; -1 without libpsl. Thread-safe. */
int ccurlew_is_public_suffix(const char *domain);

#endif
