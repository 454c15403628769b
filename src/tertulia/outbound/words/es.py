"""Spanish."""

from typing import Final

from tertulia.outbound.words.said import Letter, Said

SAID: Final = Said(
    hello="¡Hola, {name}!",
    hello_there="¡Hola!",
    or_open="O abre esta dirección: {link}",
    months=(
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ),
    day="{day} de {month} de {year}, {time} UTC",
    letters={
        "invitation": Letter(
            "{inviter} te invita a {organization}",
            "{inviter} quiere hablar contigo en {organization}, donde un equipo se escribe en canales y temas.",
            "La invitación es solo para ti y dura hasta el {until}. Si no sabes por qué la has recibido, no hagas nada.",
            "Unirme",
        ),
        "invitation_without_end": Letter(
            "{inviter} te invita a {organization}",
            "{inviter} quiere hablar contigo en {organization}, donde un equipo se escribe en canales y temas.",
            "La invitación es solo para ti y se puede usar una vez. Si no sabes por qué la has recibido, no hagas nada.",
            "Unirme",
        ),
        "confirm_sign_up": Letter(
            "Únete a {organization}",
            "Alguien, probablemente tú, quiere unirse a {organization} con esta dirección.",
            "El enlace dura hasta el {until}. Si no has sido tú, no hagas nada: no pasará nada.",
            "Unirme",
        ),
        "has_account": Letter(
            "Tienes una cuenta en {organization}",
            "Alguien, probablemente tú, quería unirse a {organization} con esta dirección. Ya hay una cuenta con ella: inicia sesión en {site} o con cualquier cliente de Zulip.",
            "Si no has sido tú, no hagas nada.",
        ),
        "confirm_address": Letter(
            "Confirma tu dirección para {organization}",
            "Tu cuenta en {organization} va a tener esta dirección en lugar de {before}.",
            "El enlace dura hasta el {until}. Si no lo has pedido, no hagas nada: la dirección se queda como está.",
            "Confirmar",
        ),
        "forgotten": Letter(
            "Una contraseña nueva para {organization}",
            "Alguien, probablemente tú, ha olvidado la contraseña de tu cuenta en {organization}.",
            "El enlace se puede usar una vez y dura hasta el {until}. Si no has sido tú, no hagas nada: tu contraseña se queda como está.",
            "Elegir una contraseña nueva",
        ),
        "address_changed": Letter(
            "Tu dirección en {organization} ha cambiado",
            "Tu cuenta en {organization} tiene ahora la dirección {address}, y los correos irán allí.",
            "Si no has sido tú, escribe enseguida a quienes llevan la organización.",
        ),
        "password_reset": Letter(
            "Tu contraseña de {organization} ha cambiado",
            "Tu cuenta en {organization} tiene una contraseña nueva. Todos los navegadores y programas que la usaban tienen que iniciar sesión otra vez.",
            "Si no has sido tú, escribe enseguida a quienes llevan la organización.",
        ),
        "password_changed": Letter(
            "Tu contraseña de {organization} ha cambiado",
            "Alguien que conocía la contraseña de tu cuenta en {organization} la ha cambiado. Los demás navegadores han salido; los programas siguen con la misma clave de API.",
            "Si no has sido tú, elige otra en {site}/reset y escribe a quienes llevan la organización.",
        ),
        "key_changed": Letter(
            "Tu clave de API de {organization} ha cambiado",
            "Tu cuenta en {organization} tiene otra clave de API. Los programas que tenían la anterior tienen que iniciar sesión otra vez.",
            "Si no has sido tú, elige otra contraseña en {site}/reset y escribe a quienes llevan la organización.",
        ),
        "agent_key_made": Letter(
            "Un agente tiene una clave de tu cuenta en {organization}",
            "Se ha creado una clave con la que un agente puede actuar por ti en {organization}: {agent}. Qué puede hacer, y cómo retirarla, está en tus ajustes, en Agentes.",
            "Si no has sido tú, elige otra contraseña en {site}/reset, con lo que terminan todas estas claves, y escribe a quienes llevan la organización.",
        ),
        "new_sign_in": Letter(
            "Un inicio de sesión nuevo en {organization}",
            "Alguien ha iniciado sesión en tu cuenta de {organization} desde donde no se había hecho antes: el {at}, desde la dirección {address}, con: {agent}.",
            "Si has sido tú, no hagas nada. Si no, elige otra contraseña en {site}/reset. Estos correos se desactivan en los ajustes, con las notificaciones.",
        ),
        "deactivated": Letter(
            "Tu cuenta en {organization} se ha desactivado",
            "Tu cuenta en {organization} ({site}) se ha desactivado. Ya no puedes iniciar sesión en ella.",
            "Si crees que es un error, escribe a quienes llevan la organización.",
        ),
        "deactivated_with_a_word": Letter(
            "Tu cuenta en {organization} se ha desactivado",
            "Tu cuenta en {organization} ({site}) se ha desactivado. Ya no puedes iniciar sesión en ella.",
            "La administración añade: {comment}",
        ),
        "welcome": Letter(
            "Te damos la bienvenida a {organization}",
            "Ya formas parte de {organization}. Entra en {site} con cualquier navegador, e instálalo desde ahí en el teléfono; también sirve cualquier cliente de Zulip. Se habla en canales, y en ellos por temas: sigue los que te importan y silencia los demás.",
            "Cuando no estés, te avisaremos por correo de lo que te escriban. Cómo y de qué lo eliges tú, en los ajustes: {site}/#settings/notifications",
        ),
    },
    conversations={
        "unknown": "Usuario desconocido",
        "opening_direct": "{name} te ha escrito en {organization}.",
        "opening_group": "Hay algo nuevo en una conversación tuya en {organization}.",
        "opening_mentioned": "Te han mencionado en {organization}.",
        "opening_wildcard": "Han mencionado a todos en una conversación tuya en {organization}.",
        "opening_followed": "Hay algo nuevo en un tema que sigues en {organization}.",
        "opening_channel": "Hay algo nuevo en un canal del que quieres recibir avisos, en"
        " {organization}.",
        "direct": "Mensajes directos con {names}",
        "general": "chat general",
        "button": "Abrir la conversación",
        "more": "… y {count} más.",
        "hidden_subject": "Mensajes nuevos",
        "hidden": "Hay {count} mensajes nuevos para ti en {organization}.",
        "hidden_one": "Hay un mensaje nuevo para ti en {organization}.",
        "hidden_button": "Abrir {organization}",
        "hidden_by_realm": "La organización no deja que los correos digan lo que dicen los"
        " mensajes.",
        "hidden_by_self": "Has elegido que los correos no digan lo que dicen los mensajes.",
        "no_reply": "Contesta en {organization}: nadie lee las respuestas a este correo.",
        "reply": "Contesta a este correo para contestar allí.",
        "why": "Has recibido este correo porque no estabas. Cómo se te avisa está en los ajustes:"
        " {settings}",
        "unsubscribe": "No quiero más correos así",
        "digest_subject": "Lo que ha pasado en {organization}",
        "digest_opening": "¡Hola, {name}! Esto es parte de lo que se ha escrito en {organization}"
        " desde que estuviste por última vez.",
        "digest_messages": "{count} mensajes, de {people}",
        "digest_message": "un mensaje, de {people}",
        "digest_and_others": "{people} y otros",
        "digest_why": "Recibes un resumen porque has estado fuera un tiempo. Se desactiva en los"
        " ajustes: {settings}",
    },
    pushes={
        "reply": "Responder",
        "read": "Marcar como leído",
        "placeholder": "Tu respuesta",
        "failed": "No se pudo enviar: ",
        "unknown": "Alguien",
        "general": "charla general",
        "group": "{name} a {others}",
        "hidden_one": "Un mensaje nuevo",
        "hidden": "{count} mensajes nuevos",
        "more": "y {count} antes",
        "test": "Funciona: así te avisamos.",
    },
)
