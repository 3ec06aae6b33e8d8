"""Writes the named text files, joined, as one C table `name` of string literals."""
import sys

name, header, out, *files = sys.argv[1:]
escapes = {'"': '\\"', '\\': '\\\\', '?': '\\?'}
lines = []
for path in files:
    with open(path, encoding='ascii') as f:
        for line in f:
            if line.startswith('#include "codegen/') or line.startswith('#include "amprt.h"'):
                continue  # all of them are in the text
            text = ''.join(escapes.get(c, c) for c in line.rstrip('\n'))
            lines.append('    "%s\\n",\n' % text)
with open(out, 'w', encoding='ascii') as f:
    f.write('#include "%s"\n\nconst char *const %s[] = {\n' % (header, name))
    f.writelines(lines)
    f.write('    0,\n};\n')
