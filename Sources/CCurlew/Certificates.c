/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of connections, and their paths to an anchor, from the OpenSSL that libcurl uses. Its functions are looked up in the
   process as in CCurlew.c, for the same reason; its opaque types are void here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "CCurlew.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*free_data)(void *parent, void *data, void *all, int index, long number, void *pointer);

/* All functions by name and type, available in OpenSSL 1.1.0 and later. */
#define FUNCTIONS(each)                                                                                                                     \
    each(SSL_get_peer_cert_chain, void *, (const void *ssl))                                                                                \
    each(SSL_get0_verified_chain, void *, (const void *ssl))                                                                                \
    each(SSL_get_sigalgs, int, (void *ssl, int index, int *sign, int *hash, int *both, unsigned char *raw_sign, unsigned char *raw_hash))    \
    each(SSL_get_certificate, void *, (const void *ssl))                                                                                    \
    each(SSL_get_client_CA_list, void *, (const void *ssl))                                                                                 \
    each(i2d_X509_NAME, int, (const void *name, unsigned char **bytes))                                                                     \
    each(SSL_CTX_get_cert_store, void *, (const void *context))                                                                             \
    each(SSL_CTX_set_cert_cb, void, (void *context, int (*callback)(void *ssl, void *data), void *data))                                     \
    each(SSL_CTX_set_ex_data, int, (void *context, int index, void *data))                                                                  \
    each(CRYPTO_get_ex_new_index, int, (int kind, long number, void *pointer, void *create, void *copy, free_data destroy))                  \
    each(SSL_CTX_get_verify_mode, int, (const void *context))                                                                               \
    each(SSL_CTX_set_verify, void, (void *context, int mode, int (*callback)(int is_valid, void *verification)))                             \
    each(OPENSSL_sk_num, int, (const void *stack))                                                                                          \
    each(OPENSSL_sk_value, void *, (const void *stack, int index))                                                                          \
    each(OPENSSL_sk_new_null, void *, (void))                                                                                               \
    each(OPENSSL_sk_push, int, (void *stack, const void *value))                                                                            \
    each(OPENSSL_sk_free, void, (void *stack))                                                                                              \
    each(d2i_X509, void *, (void **x509, const unsigned char **bytes, long length))                                                         \
    each(i2d_X509, int, (void *x509, unsigned char **bytes))                                                                                \
    each(X509_free, void, (void *x509))                                                                                                     \
    each(X509_verify, int, (void *x509, void *key))                                                                                         \
    each(X509_get0_pubkey, void *, (const void *x509))                                                                                      \
    each(X509_get_ext_d2i, void *, (const void *x509, int kind, int *is_critical, int *index))                                              \
    each(GENERAL_NAMES_free, void, (void *names))                                                                                           \
    each(X509_check_host, int, (void *x509, const char *name, size_t length, unsigned flags, char **peer))                                  \
    each(X509_check_ip_asc, int, (void *x509, const char *address, unsigned flags))                                                         \
    each(X509_STORE_new, void *, (void))                                                                                                    \
    each(X509_STORE_free, void, (void *store))                                                                                              \
    each(X509_STORE_add_cert, int, (void *store, void *x509))                                                                               \
    each(X509_STORE_set_flags, int, (void *store, unsigned long flags))                                                                     \
    each(X509_STORE_load_locations, int, (void *store, const char *file, const char *directory))                                            \
    each(X509_STORE_add_lookup, void *, (void *store, void *method))                                                                        \
    each(X509_LOOKUP_file, void *, (void))                                                                                                  \
    each(X509_load_crl_file, int, (void *lookup, const char *file, int type))                                                               \
    each(X509_STORE_CTX_new, void *, (void))                                                                                                \
    each(X509_STORE_CTX_free, void, (void *context))                                                                                        \
    each(X509_STORE_CTX_init, int, (void *context, void *store, void *x509, void *untrusted))                                               \
    each(X509_STORE_CTX_set_default, int, (void *context, const char *name))                                                                \
    each(X509_STORE_CTX_get_error, int, (const void *context))                                                                              \
    each(X509_STORE_CTX_set_error, void, (void *context, int error))                                                                        \
    each(X509_STORE_CTX_get_error_depth, int, (const void *context))                                                                        \
    each(X509_STORE_CTX_get_current_cert, void *, (const void *context))                                                                    \
    each(X509_STORE_CTX_get0_chain, void *, (const void *context))                                                                          \
    each(X509_verify_cert, int, (void *context))                                                                                            \
    each(X509_verify_cert_error_string, const char *, (long code))                                                                          \
    each(ERR_clear_error, void, (void))

#define DECLARE(name, result, arguments) static result(*openssl_##name) arguments;
FUNCTIONS(DECLARE)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_all;
/* Of what an SSL_CTX owns. */
static int guard_index = -1;

static void free_guard(void *context, void *data, void *all, int index, long number, void *pointer);

static void find_all(void) {
    has_all = true;
#define FIND(name, result, arguments)                                                                                                       \
    *(void **)&openssl_##name = dlsym(RTLD_DEFAULT, #name);                                                                                 \
    has_all = has_all && openssl_##name;
    FUNCTIONS(FIND)
    enum { ssl_context = 1 }; /* CRYPTO_EX_INDEX_SSL_CTX */
    if(has_all)
        guard_index = openssl_CRYPTO_get_ex_new_index(ssl_context, 0, NULL, NULL, NULL, free_guard);
    has_all = has_all && guard_index >= 0;
}

static bool has_openssl(void) {
    pthread_once(&once, find_all);
    return has_all;
}

static int encode_certificate(const void *x509, unsigned char **bytes) { return openssl_i2d_X509((void *)x509, bytes); }
static int encode_name(const void *name, unsigned char **bytes) { return openssl_i2d_X509_NAME(name, bytes); }

static bool hand_over_encoded(const void *object, int (*encode)(const void *object, unsigned char **bytes),
                              ccurlew_certificate_callback callback, void *context) {
    int length = encode(object, NULL);
    unsigned char *bytes = length > 0 ? malloc((size_t)length) : NULL;
    if(!bytes)
        return false;
    unsigned char *end = bytes;
    if(encode(object, &end) == length)
        callback(context, bytes, (size_t)length);
    free(bytes);
    return true;
}

static bool hand_over(void *x509, ccurlew_certificate_callback callback, void *context) {
    return hand_over_encoded(x509, encode_certificate, callback, context);
}

/* Paths are built by names. A host may send certificates it does not own and name one as the issuer; only the signature proves that. */
static bool was_signed_by(void *x509, void *issuer) {
    void *key = openssl_X509_get0_pubkey(issuer);
    return key && openssl_X509_verify(x509, key) == 1;
}

static bool hand_over_path(void *stack, ccurlew_certificate_callback callback, void *context) {
    int count = stack ? openssl_OPENSSL_sk_num(stack) : 0;
    for(int index = 0; index < count; index++) {
        void *x509 = openssl_OPENSSL_sk_value(stack, index);
        if(index > 0 && !was_signed_by(openssl_OPENSSL_sk_value(stack, index - 1), x509))
            break;
        if(!hand_over(x509, callback, context))
            return false;
    }
    openssl_ERR_clear_error();
    return count > 0;
}

static const void *session(CURL *easy) {
    struct curl_tlssessioninfo *info = NULL;
    if(curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || info->backend != CURLSSLBACKEND_OPENSSL)
        return NULL;
    return has_openssl() ? info->internals : NULL;
}

bool ccurlew_tls_sent_certificates(const void *ssl, ccurlew_certificate_callback callback, void *context) {
    void *stack = ssl && has_openssl() ? openssl_SSL_get_peer_cert_chain(ssl) : NULL;
    int count = stack ? openssl_OPENSSL_sk_num(stack) : 0;
    for(int index = 0; index < count; index++) {
        if(!hand_over(openssl_OPENSSL_sk_value(stack, index), callback, context))
            return false;
    }
    return count > 0;
}

bool ccurlew_tls_requests_certificate(CURL *easy) {
    /* The host sends its signature algorithms only with a certificate request (RFC 8446, section 4.3.2; RFC 5246, section 7.4.4). */
    const void *ssl = session(easy);
    return ssl && openssl_SSL_get_sigalgs((void *)ssl, -1, NULL, NULL, NULL, NULL, NULL) > 0;
}

void ccurlew_tls_requested_issuers(const void *ssl, ccurlew_certificate_callback callback, void *context) {
    void *stack = ssl && has_openssl() ? openssl_SSL_get_client_CA_list(ssl) : NULL;
    int count = stack ? openssl_OPENSSL_sk_num(stack) : 0;
    for(int index = 0; index < count; index++)
        hand_over_encoded(openssl_OPENSSL_sk_value(stack, index), encode_name, callback, context);
    openssl_ERR_clear_error();
}

bool ccurlew_tls_path(const void *ssl, ccurlew_certificate_callback callback, void *context) {
    return ssl && has_openssl() && hand_over_path(openssl_SSL_get0_verified_chain(ssl), callback, context);
}

bool ccurlew_tls_names(const void *ssl, const char *host) {
    enum { no_partial_wildcards = 0x4, never_subject = 0x20 }; /* X509_CHECK_FLAG_… */
    void *stack = openssl_SSL_get_peer_cert_chain(ssl);
    void *leaf = stack && openssl_OPENSSL_sk_num(stack) > 0 ? openssl_OPENSSL_sk_value(stack, 0) : NULL;
    if(!leaf)
        return false;
    int result = openssl_X509_check_ip_asc(leaf, host, 0);
    if(result == -2) /* not an address */
        result = openssl_X509_check_host(leaf, host, 0, no_partial_wildcards | never_subject, NULL);
    openssl_ERR_clear_error();
    return result == 1;
}

static void *parse(const struct ccurlew_bytes *certificate) {
    const unsigned char *bytes = certificate->bytes;
    return openssl_d2i_X509(NULL, &bytes, (long)certificate->length);
}

/* Adds the anchors to a store. Returns the reason if one can't be used, otherwise NULL. */
static const char *fill(void *store, const struct ccurlew_anchors *anchors) {
    enum { crl_check = 0x4, crl_check_all = 0x8, partial_chain = 0x80000, pem = 1 };
    for(size_t index = 0; index < anchors->count; index++) {
        void *x509 = parse(&anchors->certificates[index]);
        bool added = x509 && openssl_X509_STORE_add_cert(store, x509) == 1;
        openssl_X509_free(x509);
        if(!added)
            return "a trust anchor is not a certificate";
    }
    if((anchors->file || anchors->directory) && openssl_X509_STORE_load_locations(store, anchors->file, anchors->directory) != 1)
        return "the file of trust anchors can't be read";
    /* As in libcurl: an anchor need not be a root, unless there are revocation lists, whose checks would end at it. */
    if(!anchors->crl_file)
        return openssl_X509_STORE_set_flags(store, partial_chain) == 1 ? NULL : "out of memory";
    void *lookup = openssl_X509_STORE_add_lookup(store, openssl_X509_LOOKUP_file());
    if(!lookup || openssl_X509_load_crl_file(lookup, anchors->crl_file, pem) <= 0)
        return "the file of revocation lists can't be read";
    return openssl_X509_STORE_set_flags(store, crl_check | crl_check_all) == 1 ? NULL : "out of memory";
}

static const char *verify(void *store, void *stack, void *context, ccurlew_certificate_callback callback, void *callback_context) {
    if(openssl_X509_STORE_CTX_init(context, store, openssl_OPENSSL_sk_value(stack, 0), stack) != 1 ||
       openssl_X509_STORE_CTX_set_default(context, "ssl_server") != 1)
        return "out of memory";
    bool is_valid = openssl_X509_verify_cert(context) == 1;
    const char *reason = openssl_X509_verify_cert_error_string(openssl_X509_STORE_CTX_get_error(context));
    hand_over_path(openssl_X509_STORE_CTX_get0_chain(context), callback, callback_context);
    return is_valid ? NULL : reason;
}

const char *ccurlew_verify(const struct ccurlew_bytes *chain, size_t count, const struct ccurlew_anchors *anchors,
                           ccurlew_certificate_callback callback, void *callback_context) {
    if(!has_openssl())
        return "libcurl's TLS library is not OpenSSL";
    if(count == 0)
        return "there is no certificate";
    const char *reason = "out of memory";
    void *store = openssl_X509_STORE_new();
    void *stack = openssl_OPENSSL_sk_new_null();
    void *context = openssl_X509_STORE_CTX_new();
    if(store && stack && context) {
        reason = fill(store, anchors);
        for(size_t index = 0; !reason && index < count; index++) {
            void *x509 = parse(&chain[index]);
            if(!x509 || openssl_OPENSSL_sk_push(stack, x509) <= 0) {
                openssl_X509_free(x509);
                reason = "not a certificate";
            }
        }
        if(!reason)
            reason = verify(store, stack, context, callback, callback_context);
    }
    openssl_X509_STORE_CTX_free(context);
    openssl_X509_STORE_free(store);
    for(int index = 0; stack && index < openssl_OPENSSL_sk_num(stack); index++)
        openssl_X509_free(openssl_OPENSSL_sk_value(stack, index));
    openssl_OPENSSL_sk_free(stack);
    openssl_ERR_clear_error();
    return reason;
}

/* The defaults of libcurl are those of the system that it was built on: where they are missing here, as those of a library from a package
   for all systems are, the usual places are tried. */
static pthread_once_t defaults_once = PTHREAD_ONCE_INIT;
static const char *default_file, *default_directory;
static bool are_libcurls;
static const char *environment_file, *environment_directory;

/* A copy of a variable of the environment, which may change; NULL if it is not set or empty, or if the program has privileges of its own. */
static const char *variable(const char *name) {
#ifdef __linux__
    const char *value = secure_getenv(name);
#else
    const char *value = getenv(name);
#endif
    return value && *value ? strdup(value) : NULL;
}

static const char *first_readable(const char *preferred, const char *const *others) {
    if(preferred && access(preferred, R_OK) == 0)
        return preferred;
    while(*others && access(*others, R_OK) != 0)
        others++;
    return *others;
}

static void find_defaults(void) {
    static const char *const files[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                        "/etc/ssl/cert.pem", NULL};
    static const char *const directories[] = {"/etc/ssl/certs", "/etc/pki/tls/certs", NULL};
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    environment_file = variable("CURL_CA_BUNDLE");
    if(!environment_file)
        environment_file = variable("SSL_CERT_FILE");
    environment_directory = variable("SSL_CERT_DIR");
    default_file = first_readable(info->cainfo, files);
    default_directory = first_readable(info->capath, directories);
    if(default_file || default_directory) {
        are_libcurls = default_file == info->cainfo && default_directory == info->capath;
        return;
    }
    /* libcurl's message names what is missing. */
    default_file = info->cainfo;
    default_directory = info->capath;
    are_libcurls = true;
}

const char *ccurlew_environment_ca_file(void) {
    pthread_once(&defaults_once, find_defaults);
    return environment_file;
}

const char *ccurlew_environment_ca_directory(void) {
    pthread_once(&defaults_once, find_defaults);
    return environment_directory;
}

const char *ccurlew_default_ca_file(bool uses_environment) {
    pthread_once(&defaults_once, find_defaults);
    return uses_environment && environment_file ? environment_file : default_file;
}

const char *ccurlew_default_ca_directory(bool uses_environment) {
    pthread_once(&defaults_once, find_defaults);
    return uses_environment && environment_directory ? environment_directory : default_directory;
}

static CURLcode add_directory(CURL *easy, void *context, void *directory) {
    (void)easy;
    /* Adding the directory a second time has no effect. Unreadable files are ignored, as by libcurl. */
    openssl_X509_STORE_load_locations(openssl_SSL_CTX_get_cert_store(context), NULL, directory);
    openssl_ERR_clear_error();
    return CURLE_OK;
}

CURLcode ccurlew_cache_default_authorities(CURL *easy, bool uses_environment) {
    const char *file = ccurlew_default_ca_file(uses_environment), *directory = ccurlew_default_ca_directory(uses_environment);
    bool is_set = are_libcurls && file == default_file && directory == default_directory;
    CURLcode code = is_set ? CURLE_OK : curl_easy_setopt(easy, CURLOPT_CAINFO, file);
    if(code == CURLE_OK && !is_set)
        code = curl_easy_setopt(easy, CURLOPT_CAPATH, directory);
    if(code != CURLE_OK || !file || !directory || !has_openssl())
        return code;
    code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if(code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, (void *)directory);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, add_directory) : code;
}

bool ccurlew_names_host(const void *x509) {
    enum { subject_alternative_names = 85, dns_name = 2, ip_address = 7 }; /* NID_subject_alt_name, GEN_DNS, GEN_IPADD */
    if(!has_openssl())
        return true;
    bool names_host = false;
    void *names = openssl_X509_get_ext_d2i(x509, subject_alternative_names, NULL, NULL);
    int count = names ? openssl_OPENSSL_sk_num(names) : 0;
    for(int index = 0; index < count; index++) {
        /* The first member of a GENERAL_NAME is its type. */
        int type = *(const int *)openssl_OPENSSL_sk_value(names, index);
        names_host = names_host || type == dns_name || type == ip_address;
    }
    if(names)
        openssl_GENERAL_NAMES_free(names);
    openssl_ERR_clear_error();
    return names_host;
}

/* Refuses a leaf without alternative names of a host, in addition to what OpenSSL refuses. */
static int check_names(int is_valid, void *verification) {
    enum { hostname_mismatch = 62 }; /* X509_V_ERR_HOSTNAME_MISMATCH */
    if(!is_valid || openssl_X509_STORE_CTX_get_error_depth(verification) != 0 ||
       ccurlew_names_host(openssl_X509_STORE_CTX_get_current_cert(verification)))
        return is_valid;
    openssl_X509_STORE_CTX_set_error(verification, hostname_mismatch);
    return 0;
}

static CURLcode require_names(CURL *easy, void *context, void *directory) {
    openssl_SSL_CTX_set_verify(context, openssl_SSL_CTX_get_verify_mode(context), check_names);
    return directory ? add_directory(easy, context, directory) : CURLE_OK;
}

CURLcode ccurlew_require_names(CURL *easy) {
    return has_openssl() ? curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, require_names) : CURLE_OK;
}

/* Set before the option that leads to its use; always the same. */
static _Atomic(ccurlew_presentation_callback) make_guard;

static void free_guard(void *context, void *data, void *all, int index, long number, void *pointer) {
    (void)context, (void)all, (void)index, (void)number, (void)pointer;
    struct ccurlew_presentation_guard *guard = data;
    if(guard)
        guard->release(guard->context);
    free(guard);
}

static int may_present(void *ssl, void *data) {
    const struct ccurlew_presentation_guard *guard = data;
    /* A connection to a proxy has no certificate to present. */
    return (!guard->asks && !openssl_SSL_get_certificate(ssl)) || guard->may_present(guard->context, ssl);
}

static CURLcode guard_presentation(CURL *easy, void *context, void *directory) {
    if(directory)
        add_directory(easy, context, directory);
    void *member = ccurlew_get_private(easy);
    /* libcurl's own handles, which resolve names, have neither this nor a certificate. */
    if(!member)
        return CURLE_OK;
    struct ccurlew_presentation_guard *guard = malloc(sizeof *guard);
    if(!guard)
        return CURLE_OUT_OF_MEMORY;
    *guard = make_guard(member);
    if(openssl_SSL_CTX_set_ex_data(context, guard_index, guard) != 1) {
        free_guard(context, guard, NULL, guard_index, 0, NULL);
        return CURLE_OUT_OF_MEMORY;
    }
    openssl_SSL_CTX_set_cert_cb(context, may_present, guard);
    return CURLE_OK;
}

static CURLcode guard_presentation_and_require_names(CURL *easy, void *context, void *directory) {
    require_names(easy, context, NULL);
    return guard_presentation(easy, context, directory);
}

CURLcode ccurlew_guard_presentation(CURL *easy, bool requires_names, ccurlew_presentation_callback callback) {
    if(!has_openssl())
        return CURLE_OK;
    make_guard = callback;
    return curl_easy_setopt(
        easy, CURLOPT_SSL_CTX_FUNCTION, requires_names ? guard_presentation_and_require_names : guard_presentation);
}
