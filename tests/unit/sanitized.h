/* NIB_SANITIZED: 1 in a build with a sanitizer of addresses or threads, else 0. Such a build is slow, and its address
 * space is its own. */
#ifndef NIB_TESTS_SANITIZED_H
#define NIB_TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NIB_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NIB_SANITIZED 1
#endif
#ifndef NIB_SANITIZED
#define NIB_SANITIZED 0
#endif

#endif
