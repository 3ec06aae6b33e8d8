/* Reads the section `ampcc` of an ELF file: texts, some of them compressed, each behind an
 * AmprtNote. The program is not run, so it may be one for another machine. The file may be
 * anything, so every offset is checked. */
#include "frontend/diff/diff.h"
#include "runtime/amprt.h"

#include <elf.h>
#include <string.h>
#include <zlib.h>

enum { MAX_TEXT = 1 << 28 };

bool program_is(const unsigned char *bytes, size_t size) {
  return size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG);
}

typedef struct File {
  Arena *arena;
  const unsigned char *bytes;
  size_t size;
  Program *program;
  const char **part; /* the text of each part of the manifest */
  int n_parts, cap_parts, cap_targets, n_precision, cap_precision;
  const char *manifest;
} File;

static bool lies_within(const File *file, uint64_t at, uint64_t size) {
  return at <= file->size && size <= file->size - at;
}

/* The text of a note, or NULL if it is damaged. */
static const char *unpack(const File *file, const AmprtNote *note, const unsigned char *bytes) {
  if (!note->text_size)
    return arena_strdup(file->arena, (const char *)bytes, note->size);
  /* zlib makes at most some thousand bytes of one */
  if (note->text_size > MAX_TEXT || note->text_size / 1100 > note->size)
    return NULL;
  uLongf size = note->text_size;
  char *text = arena_alloc(file->arena, size + 1);
  bool good = uncompress((Bytef *)text, &size, bytes, note->size) == Z_OK;
  return good && size == note->text_size && !memchr(text, '\0', size) ? text : NULL;
}

/* Takes one text. False if it is damaged. */
static bool take(File *file, const AmprtNote *note, const unsigned char *bytes) {
  const char *text = unpack(file, note, bytes);
  if (text && !strncmp(note->name, "manifest", sizeof note->name))
    file->manifest = text;
  else if (text && !strncmp(note->name, "ir", sizeof note->name))
    file->program->ir = text;
  else if (text && !strncmp(note->name, "part", sizeof note->name))
    arena_push(file->arena, file->part, file->n_parts, file->cap_parts, text);
  else if (text && !strncmp(note->name, "precision", sizeof note->name))
    arena_push(file->arena, file->program->precision, file->n_precision, file->cap_precision, text);
  return text != NULL;
}

/* Takes the texts of one section. False if one of them is damaged. */
static bool take_all(File *file, uint64_t at, uint64_t size) {
  AmprtNote note;
  for (uint64_t end = at + size; at + sizeof note <= end;) {
    memcpy(&note, file->bytes + at, sizeof note);
    if (memcmp(note.mark, AMPRT_NOTE_MARK, sizeof note.mark)) {
      at += 8; /* zeros between two texts */
      continue;
    }
    at += sizeof note;
    if (note.size > end - at || !take(file, &note, file->bytes + at))
      return false;
    at += (note.size + 7) / 8 * 8;
  }
  return true;
}

/* Goes through the table of sections. Returns what is wrong, or NULL. */
static const char *take_sections(File *file) {
  static const char damaged[] = "it is damaged: its sections do not lie within it";
  Elf64_Ehdr head;
  Elf64_Shdr names, section;
  if (file->size < sizeof head || file->bytes[EI_CLASS] != ELFCLASS64 ||
      file->bytes[EI_DATA] != ELFDATA2LSB)
    return "it is no ELF file of 64 bits, little endian";
  memcpy(&head, file->bytes, sizeof head);
  if (head.e_shentsize != sizeof section || head.e_shstrndx >= head.e_shnum ||
      !lies_within(file, head.e_shoff, (uint64_t)head.e_shnum * sizeof section))
    return damaged;
  memcpy(&names, file->bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
  if (!lies_within(file, names.sh_offset, names.sh_size))
    return damaged;
  for (int i = 0; i < head.e_shnum; i++) {
    static const char name[] = "ampcc";
    memcpy(&section, file->bytes + head.e_shoff + (size_t)i * sizeof section, sizeof section);
    if (section.sh_flags & SHF_ALLOC)
      *(section.sh_flags & SHF_EXECINSTR ? &file->program->code_bytes
                                         : &file->program->data_bytes) += (int64_t)section.sh_size;
    if (section.sh_type != SHT_PROGBITS || section.sh_name > names.sh_size ||
        names.sh_size - section.sh_name < sizeof name ||
        memcmp(file->bytes + names.sh_offset + section.sh_name, name, sizeof name))
      continue;
    if (!lies_within(file, section.sh_offset, section.sh_size))
      return damaged;
    if (!take_all(file, section.sh_offset, section.sh_size))
      return "it is damaged: a text in its section `ampcc`";
  }
  return NULL;
}

/* The manifest as the program prints it. */
static json_t *whole_manifest(const File *file) {
  const char *text = file->manifest;
  for (int i = 0; i < file->n_parts; i++)
    text = arena_printf(file->arena, "%s%s%s", text, i ? ",\n" : "", file->part[i]);
  return json_loads(arena_printf(file->arena, "%s\n]}\n", text), 0, NULL);
}

Program *program_read(Arena *arena, const unsigned char *bytes, size_t size, const char **error) {
  File file = {arena, bytes, size, .program = arena_new_of(arena, Program)};
  *error = take_sections(&file);
  if (!*error && !file.manifest)
    *error = "no program of ampcc, or of one that wrote no manifest yet";
  if (*error)
    return NULL;
  Program *program = file.program;
  program->manifest = whole_manifest(&file);
  json_t *parts = json_object_get(program->manifest, "parts"), *part;
  size_t i;
  json_array_foreach(parts, i, part) {
    const char *target = json_string_value(json_object_get(part, "target"));
    arena_push(arena, program->target, program->n_parts, file.cap_targets, target ? target : "");
  }
  if (!program->manifest || !program->n_parts || program->n_parts != file.n_precision) {
    *error = "it is damaged: its manifest";
    json_decref(program->manifest);
    return NULL;
  }
  return program;
}
