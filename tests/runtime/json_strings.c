/* Reads one JSON string per line of standard input, its bytes in hexadecimal; prints what the
 * runtime's reader makes of it, in the same form, or `refused`. For json_strings.py. */
#include "runtime/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

int main(void) {
  static char line[1 << 16];
  while (fgets(line, sizeof line, stdin)) {
    size_t n = strcspn(line, "\n") / 2;
    char *text = malloc(n + 1); /* exactly as long, so that a sanitizer sees what reads past it */
    const char *string;
    if (!text)
      return 1;
    for (size_t i = 0; i < n; i++)
      text[i] = (char)(digit(line[2 * i]) << 4 | digit(line[2 * i + 1]));
    AmprtJson json = {text, text + n};
    bool good = amprt_json_string(&json, &string);
    amprt_json_sees(&json, ' ');
    if (good && json.at == json.end)
      for (const char *c = string; *c; c++)
        printf("%02x", (unsigned char)*c);
    else
      printf("refused");
    printf("\n");
    free(text);
  }
  return 0;
}
