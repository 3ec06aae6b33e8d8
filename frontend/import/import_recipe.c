/* Imports the recipe: first the fields of the model, then those of the command line. The rows of
 * ir/recipe/recipe.def and the fields of message Recipe are matched by name; a row without a field
 * is a bug that every test would hit. */
#include "frontend/import/import_parts.h"

#include <string.h>

static bool is_set(const ProtobufCFieldDescriptor *field, const char *message) {
  const char *quantifier = message + field->quantifier_offset;
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return *(const size_t *)quantifier > 0;
  return *(const uint32_t *)quantifier == field->id;
}

static void copy_field(Import *im, const RecipeField *field, const ProtobufCFieldDescriptor *from,
                       const char *message) {
  static const ProtobufCType type_of_kind[] = {[RECIPE_STR] = PROTOBUF_C_TYPE_STRING,
                                               [RECIPE_INT] = PROTOBUF_C_TYPE_INT64,
                                               [RECIPE_FLOAT] = PROTOBUF_C_TYPE_DOUBLE,
                                               [RECIPE_FLOATS] = PROTOBUF_C_TYPE_DOUBLE};
  CHECK(from->type == type_of_kind[field->kind], "recipe field %s has another type in model.proto",
        field->field);
  char *to = (char *)im->module->recipe + field->offset;
  if (field->kind == RECIPE_FLOATS) {
    RecipeFloats list = {.n = (int)*(const size_t *)(message + from->quantifier_offset)};
    memcpy(&list.v, message + from->offset, sizeof list.v);
    memcpy(to, &list, sizeof list);
  } else {
    memcpy(to, message + from->offset, 8); /* holds a pointer, an int64 or a double */
  }
}

static void read_message(Import *im) {
  const Ampcc__Recipe *recipe = im->model->recipe;
  for (int i = 0; recipe && i < RECIPE_COUNT; i++) {
    const RecipeField *field = &recipe_field[i];
    if (!strcmp(field->field, "name")) /* ModelDef.name */
      continue;
    const ProtobufCFieldDescriptor *from =
        protobuf_c_message_descriptor_get_field_by_name(recipe->base.descriptor, field->field);
    CHECK(from, "recipe field %s is not in model.proto", field->field);
    if (is_set(from, (const char *)recipe))
      copy_field(im, field, from, (const char *)recipe);
  }
}

void import_recipe(Import *im, Overrides overrides) {
  Recipe *recipe = im->module->recipe;
  if (*im->model->name)
    recipe->name = im->model->name;
  read_message(im);
  for (int i = 0; i < overrides.n; i++) {
    bool fits = recipe_set(im->arena, recipe, overrides.at[i].field, overrides.at[i].text);
    CHECK(fits, "an override was not checked");
  }
  recipe_check(im->arena, recipe, NULL, import_loc(im, NULL), im->diag);
}
