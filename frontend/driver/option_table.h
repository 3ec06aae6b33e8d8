/* Command lines by table, for ampcc and ampcc-tf alike: each has a .def file of rows
 *
 *   OPTION(id, flag, letter, argument, group, help)
 *
 *   flag      spelled with dashes; underscores on the command line are read as dashes. One in
 *             capitals has one dash, as in gcc: -MF FILE
 *   letter    the short form; 0 if there is none
 *   argument  what --help calls the value; NULL for a switch; "[X]" if the value may be left out
 *   group     the heading in --help under which the option stands */
#ifndef AMPCC_FRONTEND_DRIVER_OPTION_TABLE_H
#define AMPCC_FRONTEND_DRIVER_OPTION_TABLE_H

#include "frontend/import/import.h"
#include "ir/base/arena.h"

typedef struct OptionInfo {
  const char *flag, *argument, *help;
  char letter;
  int group;
} OptionInfo;

typedef struct OptionTable {
  const char *program; /* the first word of its messages */
  const OptionInfo *option;
  int n_options;
  const char *const *heading; /* one for each group */
  int n_groups;
  int warn;          /* the index of option -W, which may be given more than once */
  unsigned warnings; /* a bit for each WarnId that the program can give */
  bool recipe;       /* are the fields of the recipe options as well? */
  /* The flags of another program, ended by NULL, and that program: "ampcc, for models". */
  const char *const *foreign;
  const char *owner;
} OptionTable;

/* An option as it was given. */
typedef struct GivenWord {
  int option;       /* its index; -1: a field of the recipe */
  const char *text; /* "--FLAG=VALUE" or "--FLAG" */
} GivenWord;

/* What a command line says. Strings belong to argv or to the arena. */
typedef struct CommandLine {
  const char *model;     /* the one argument that is no option; NULL if there is none */
  const char **text;     /* the value of each option; NULL if absent, "" without a value */
  Overrides overrides;   /* of the recipe, in the order given */
  const GivenWord *word; /* all options in the order given; --recipe=NAME is one of them */
  int n_words;
  WarnSet warn;
} CommandLine;

/* Arguments @FILE stand for the words in a file (response.h). Fills *out, whose `text` has room for
 * every option. False after one line on stderr. */
bool command_line_parse(Arena *arena, const OptionTable *table, int argc, char **argv,
                        CommandLine *out);
/* Prints the part of --help that the table holds: options by group, warnings, the recipe. */
void option_table_help(const OptionTable *table, FILE *out);

/* What the value of an option means. `text` is the value; NULL, an absent option, leaves *out
 * alone. False after the line of option_wrong_value.
 *
 *   choice   its position among the words of the row's argument, "A|B|C" or "[A|B|C]"
 *   number   one within [low, high]
 *   count    a whole number within [1, most] */
bool option_choice(const OptionTable *table, int option, const char *text, int *out);
bool option_number(const OptionTable *table, int option, const char *text, double low, double high,
                   double *out);
bool option_count(const OptionTable *table, int option, const char *text, int most, int *out);
/* Prints "PROGRAM: --FLAG takes ARGUMENT, not `TEXT`" and returns false. */
bool option_wrong_value(const OptionTable *table, int option, const char *text);

#endif
