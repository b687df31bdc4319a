/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "CCurlew.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/xattr.h>

/* Has OpenSSL live as long as the process: its clean-up at exit frees what other threads are using. By the time of its first use, which may
   be by any library, this must have been said. */
__attribute__((constructor)) static void keep_openssl(void) {
    enum { no_atexit = 0x00080000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*initialize)(uint64_t options, const void *settings);
    *(void **)&initialize = dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    if(initialize)
        initialize(no_atexit, NULL);
}

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_code;

static void global_start(void) { global_code = curl_global_init(CURL_GLOBAL_DEFAULT); }

CURLcode ccurlew_global_init(void) {
    pthread_once(&global_once, global_start);
    return global_code;
}

const curl_version_info_data *ccurlew_version_info(void) { return curl_version_info(CURLVERSION_NOW); }

CURLcode ccurlew_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }
CURLcode ccurlew_set_offset(CURL *easy, CURLoption option, curl_off_t value) { return curl_easy_setopt(easy, option, value); }
CURLcode ccurlew_set_string(CURL *easy, CURLoption option, const char *value) { return curl_easy_setopt(easy, option, value); }
CURLcode ccurlew_set_pointer(CURL *easy, CURLoption option, void *value) { return curl_easy_setopt(easy, option, value); }

CURLcode ccurlew_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t length) {
    struct curl_blob blob = {(void *)bytes, length, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}

CURLcode ccurlew_set_data_callback(CURL *easy, CURLoption option, ccurlew_data_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}
CURLcode ccurlew_set_seek_callback(CURL *easy, ccurlew_seek_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}
CURLcode ccurlew_set_prereq_callback(CURL *easy, ccurlew_prereq_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}
CURLcode ccurlew_set_opensocket_callback(CURL *easy, ccurlew_opensocket_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}
CURLcode ccurlew_set_closesocket_callback(CURL *easy, ccurlew_closesocket_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

CURLcode ccurlew_set_trailer_callback(CURL *easy, ccurlew_trailer_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, callback);
}

long ccurlew_get_long(CURL *easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

curl_off_t ccurlew_get_offset(CURL *easy, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

const char *ccurlew_get_string(CURL *easy, CURLINFO info) {
    char *value = NULL;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : NULL;
}

void *ccurlew_get_private(CURL *easy) {
    char *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

curl_socket_t ccurlew_get_active_socket(CURL *easy) {
    curl_socket_t value = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &value) == CURLE_OK ? value : CURL_SOCKET_BAD;
}

/* OpenSSL's functions are looked up in the process rather than linked: the objects belong to the OpenSSL that libcurl is linked to, and
   another copy of the library would misinterpret them. */
static pthread_once_t openssl_once = PTHREAD_ONCE_INIT;
static const char *(*openssl_get_version)(const void *ssl);
static const void *(*openssl_get_current_cipher)(const void *ssl);
static const char *(*openssl_cipher_get_name)(const void *cipher);
static void (*openssl_get_alpn)(const void *ssl, const unsigned char **name, unsigned int *length);
static int (*openssl_shutdown)(const void *ssl);
static void (*openssl_thread_stop)(void);
static int (*openssl_get_error)(const void *ssl, int code);
static void (*openssl_set_msg_callback)(const void *ssl, ccurlew_tls_message_callback callback);
static long (*openssl_ctrl)(const void *ssl, int command, long number, void *pointer);
static uint64_t (*openssl_set_options)(const void *ssl, uint64_t options);
static void *(*openssl_get_peer_certificate)(const void *ssl);
static void (*openssl_free_certificate)(void *certificate);

static void openssl_find(void) {
    *(void **)&openssl_get_version = dlsym(RTLD_DEFAULT, "SSL_get_version");
    *(void **)&openssl_get_current_cipher = dlsym(RTLD_DEFAULT, "SSL_get_current_cipher");
    *(void **)&openssl_cipher_get_name = dlsym(RTLD_DEFAULT, "SSL_CIPHER_get_name");
    *(void **)&openssl_get_alpn = dlsym(RTLD_DEFAULT, "SSL_get0_alpn_selected");
    *(void **)&openssl_shutdown = dlsym(RTLD_DEFAULT, "SSL_shutdown");
    *(void **)&openssl_thread_stop = dlsym(RTLD_DEFAULT, "OPENSSL_thread_stop");
    *(void **)&openssl_get_error = dlsym(RTLD_DEFAULT, "SSL_get_error");
    *(void **)&openssl_set_msg_callback = dlsym(RTLD_DEFAULT, "SSL_set_msg_callback");
    *(void **)&openssl_ctrl = dlsym(RTLD_DEFAULT, "SSL_ctrl");
    *(void **)&openssl_set_options = dlsym(RTLD_DEFAULT, "SSL_set_options");
    *(void **)&openssl_get_peer_certificate = dlsym(RTLD_DEFAULT, "SSL_get1_peer_certificate");
    if(!openssl_get_peer_certificate) /* its name before OpenSSL 3 */
        *(void **)&openssl_get_peer_certificate = dlsym(RTLD_DEFAULT, "SSL_get_peer_certificate");
    *(void **)&openssl_free_certificate = dlsym(RTLD_DEFAULT, "X509_free");
}

static const void *openssl_session(CURL *easy) {
    struct curl_tlssessioninfo *info = NULL;
    if(curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || info->backend != CURLSSLBACKEND_OPENSSL)
        return NULL;
    pthread_once(&openssl_once, openssl_find);
    return info->internals;
}

static _Thread_local void *thread_pointer;

void *ccurlew_thread_pointer(void) { return thread_pointer; }

void ccurlew_set_thread_pointer(void *pointer) { thread_pointer = pointer; }

void ccurlew_thread_stop(void) {
    pthread_once(&openssl_once, openssl_find);
    if(openssl_thread_stop)
        openssl_thread_stop();
}

const char *ccurlew_tls_version(CURL *easy) {
    const void *ssl = openssl_session(easy);
    return ssl && openssl_get_version ? openssl_get_version(ssl) : NULL;
}

bool ccurlew_tls_is_http2(CURL *easy) {
    const void *ssl = openssl_session(easy);
    const unsigned char *name = NULL;
    unsigned int length = 0;
    if(ssl && openssl_get_alpn)
        openssl_get_alpn(ssl, &name, &length);
    return name && length == 2 && name[0] == 'h' && name[1] == '2';
}

const char *ccurlew_tls_cipher(CURL *easy) {
    const void *ssl = openssl_session(easy);
    if(!ssl || !openssl_get_current_cipher || !openssl_cipher_get_name)
        return NULL;
    const void *cipher = openssl_get_current_cipher(ssl);
    return cipher ? openssl_cipher_get_name(cipher) : NULL;
}

bool ccurlew_tls_end_sending(CURL *easy) {
    enum { want_write = 3 }; /* SSL_ERROR_WANT_WRITE */
    const void *ssl = openssl_session(easy);
    if(!ssl || !openssl_shutdown || !openssl_get_error)
        return true;
    int code = openssl_shutdown(ssl);
    return code >= 0 || openssl_get_error(ssl, code) != want_write;
}

const void *ccurlew_tls_session(CURL *easy) { return openssl_session(easy); }

bool ccurlew_tls_has_names(CURL *easy) {
    const void *ssl = openssl_session(easy);
    if(!ssl || !openssl_get_peer_certificate || !openssl_free_certificate)
        return true;
    void *certificate = openssl_get_peer_certificate(ssl);
    if(!certificate)
        return true;
    bool has_names = ccurlew_names_host(certificate);
    openssl_free_certificate(certificate);
    return has_names;
}

bool ccurlew_tls_watch(CURL *easy, ccurlew_tls_message_callback callback, void *context) {
    enum { set_context = 16, ignore_unexpected_eof = 1 << 7 }; /* SSL_CTRL_SET_MSG_CALLBACK_ARG, SSL_OP_IGNORE_UNEXPECTED_EOF */
    const void *ssl = openssl_session(easy);
    if(!ssl || !openssl_set_msg_callback || !openssl_ctrl)
        return false;
    openssl_ctrl(ssl, set_context, 0, context);
    openssl_set_msg_callback(ssl, callback);
    /* libcurl 8.14.1 reports an end without close_notify as an error of its own; whether it is one is the caller's to decide. */
    if(openssl_set_options)
        openssl_set_options(ssl, ignore_unexpected_eof);
    return true;
}

CURLMcode ccurlew_multi_set_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
CURLMcode ccurlew_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) { return curl_multi_setopt(multi, option, value); }
CURLMcode ccurlew_multi_set_socket_callback(CURLM *multi, ccurlew_socket_callback callback) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
}
CURLMcode ccurlew_multi_set_timer_callback(CURLM *multi, ccurlew_timer_callback callback) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
}
CURLSHcode ccurlew_share_tls_sessions(CURLSH *share) { return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION); }

const struct sockaddr *ccurlew_address(const struct curl_sockaddr *address) { return &address->addr; }

int ccurlew_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }

int ccurlew_deflate_init(z_stream *stream, int level, int window_bits)
{
    return deflateInit2(stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
}

/* libpsl is a dependency of Debian's libcurl, but not part of libcurl's interface: it is loaded at run time. */
static pthread_once_t suffixes_once = PTHREAD_ONCE_INIT;
static const void *suffixes;
static int (*is_public_suffix)(const void *list, const char *domain);

static void suffixes_start(void) {
    void *library = dlopen("libpsl.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const void *(*builtin)(void) = (const void *(*)(void))dlsym(library, "psl_builtin");
    is_public_suffix = (int (*)(const void *, const char *))dlsym(library, "psl_is_public_suffix");
    if (builtin && is_public_suffix) suffixes = builtin();
}

int ccurlew_is_public_suffix(const char *domain) {
    pthread_once(&suffixes_once, suffixes_start);
    return suffixes ? is_public_suffix(suffixes, domain) : -1;
}

#ifdef __APPLE__
ssize_t ccurlew_get_attribute(int descriptor, const char *name, void *value, size_t size) {
    return fgetxattr(descriptor, name, value, size, 0, 0);
}
int ccurlew_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0, 0);
}
#else
ssize_t ccurlew_get_attribute(int descriptor, const char *name, void *value, size_t size) {
    return fgetxattr(descriptor, name, value, size);
}
int ccurlew_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0);
}
#endif
